import { describe, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import { connectionRuns, connections, events } from '../../db/schema/index.ts';
import { deliverActionJob } from '../../server/automation/delivery/deliver.ts';
import { testApi } from '../support/api.ts';
import { deliveringService } from '../support/deliveries.ts';
import { uniqueName } from '../support/resources.ts';

const { service, deps, call, make, trigger, event, fire, failed, settled, casesOf, deliveriesOf } =
  await deliveringService({});

describe('pipeline actions', () => {
  const connectionOf = async (id: string) =>
    (await deps.db.select().from(connections).where(eq(connections.id, id)))[0]!;
  const runsOf = (id: string) =>
    deps.db.select().from(connectionRuns).where(eq(connectionRuns.connection_id, id)).orderBy(connectionRuns.number);

  test('pause_connection pauses the connection, with the trigger as the actor', async () => {
    const { id } = await make.connection({ schedule: { type: 'interval', interval_minutes: 60 } });
    const created = await trigger({ actions: [{ type: 'pause_connection' }] });
    await failed(created, { connection_id: id });
    expect(await settled(created)).toMatchObject([{ status: 'delivered' }]);
    expect(await connectionOf(id)).toMatchObject({
      status: 'paused',
      status_reason: 'paused_by_trigger',
      next_run_at: null,
    });
    const [emitted] = await deps.db
      .select()
      .from(events)
      .where(and(eq(events.event, 'connection_paused'), eq(events.connection_id, id)));
    expect(emitted).toMatchObject({ actor: { type: 'automation', id: created.id }, causation_depth: 1 });
  });

  test('run_connection starts one run, whose events are deeper in the chain of causes', async () => {
    const { id } = await make.connection();
    const created = await trigger({
      actions: [{ type: 'run_connection', connection_id: id }],
      rule: 'event == "user_added"',
    });
    const row = await event('user_added');
    await fire({ trigger: created, event: row, group: {}, kind: 'fired' });
    const [delivery] = await settled(created);
    expect(delivery).toMatchObject({ status: 'delivered' });
    // A repeated job, as after a worker's death, changes nothing.
    await deliverActionJob(deps, delivery!.id, new AbortController().signal);
    expect(await runsOf(id)).toMatchObject([{ trigger_type: 'automation', triggered_by: null, causation_depth: 1 }]);
    const [emitted] = await deps.db
      .select()
      .from(events)
      .where(and(eq(events.event, 'connection_run_queued'), eq(events.connection_id, id)));
    expect(emitted).toMatchObject({ actor: { type: 'automation' }, causation_depth: 1 });
  });

  test('run_connection waits for the active run', async () => {
    const { id } = await make.connection({ run_immediately: true });
    const created = await trigger({
      actions: [{ type: 'run_connection', connection_id: id }],
      rule: 'event == "user_added"',
    });
    await fire({ trigger: created, event: await event('user_added'), group: {}, kind: 'fired' });
    expect(await settled(created)).toMatchObject([{ status: 'failed', attempts: 8 }]);
    expect((await deliveriesOf(created))[0]?.error).toStartWith('run_already_active');
    expect(await runsOf(id)).toHaveLength(1);
  });

  test('rerun_run reruns up to its limit', async () => {
    const { id } = await make.connection({ run_immediately: true });
    const created = await trigger({ actions: [{ type: 'rerun_run', max_reruns: 2 }] });
    for (let count = 0; count < 3; count += 1) {
      const last = (await runsOf(id)).at(-1)!;
      await call('POST', `/connections/${last.id}/stop`);
      await failed(created, { connection_id: id, connection_run_id: last.id });
      await settled(created, count + 1);
    }
    expect((await runsOf(id)).map(({ trigger_type }) => trigger_type)).toEqual(['api', 'rerun', 'rerun']);
    expect((await deliveriesOf(created)).map(({ status }) => status)).toEqual(['delivered', 'delivered', 'suppressed']);
    expect(await casesOf(created)).toMatchObject([{ event_count: 3 }]);
  });

  test('run_connection of a paused connection fails with the reason', async () => {
    const { id } = await make.connection({ status: 'paused' });
    const created = await trigger({
      actions: [{ type: 'run_connection', connection_id: id }],
      rule: 'event == "user_added"',
    });
    await fire({ trigger: created, event: await event('user_added'), group: {}, kind: 'fired' });
    expect(await settled(created)).toMatchObject([
      { status: 'failed', attempts: 1, error: 'connection_not_active: The connection is paused' },
    ]);
  });

  test('400: action_loop when the run would fire the trigger again', async () => {
    const { id, name } = await make.connection();
    const attempt = (rule: string, actions: object[]) =>
      call('POST', '/automation/triggers', { name: uniqueName('trigger'), rule, actions });
    const loops = [
      await attempt('event == "connection_succeeded"', [{ type: 'run_connection' }]),
      await attempt('event == "connection_run_started"', [{ type: 'rerun_run' }]),
      await attempt('severity == "info"', [{ type: 'run_connection' }]),
      await attempt('event == "connection_succeeded"', [
        { type: 'pause_connection' },
        { type: 'run_connection', connection_id: id },
      ]),
      await attempt(`event == "connection_succeeded" && connection_name == "${name}"`, [
        { type: 'run_connection', connection_id: id },
      ]),
    ];
    expect(loops.map(({ body }) => body.code)).toEqual(Array(5).fill('action_loop'));
    const chain = await attempt('event == "connection_succeeded" && connection_name == "another"', [
      { type: 'run_connection', connection_id: id },
    ]);
    expect(chain.status).toBe(201);
  });

  test('403: a trigger cannot do what its creator may not do', async () => {
    const api = testApi(service);
    const limited = api.as(await api.keyWith(['triggers.create']));
    const body = {
      name: uniqueName('trigger'),
      rule: 'event == "connection_failed"',
      actions: [{ type: 'pause_connection' }],
    };
    const answer = await limited('POST', '/automation/triggers', body);
    expect(answer.status).toBe(403);
    expect(answer.body).toMatchObject({ code: 'permission_denied', required_permission: 'connections.update' });
  });
});
