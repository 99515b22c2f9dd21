import { describe, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import { deliveries } from '../../db/schema/index.ts';
import { deliverActionJob } from '../../server/automation/delivery/deliver.ts';
import { resendLostDeliveries } from '../../server/automation/delivery/queue-deliveries.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { connectionId, firingsOf } from '../support/firings.ts';
import { until } from '../support/until.ts';
import { webhookReceiver } from '../support/webhook-receiver.ts';
import { spawnWorker } from '../support/worker-process.ts';

const receiver = webhookReceiver();
const service = await testDeps({ config: { EGRESS_ALLOW: [receiver.allow] } });
const { deps } = service;
const { trigger, emitEvent, evaluate, deliveriesOf, event, eventsOf, fire } = firingsOf(service, testApi(service).call);
const worker = () => spawnWorker(service, { EGRESS_ALLOW: receiver.allow, DELIVERY_BACKOFF_SECONDS: '0' });
const hook = (path: string) => ({ actions: [{ type: 'call_webhook', url: `${receiver.url}${path}` }] });
const idOf = (call: { headers: Headers }) => call.headers.get('x-delivery-id');

describe('a worker killed between event and delivery', () => {
  test('loses nothing, and repeats only under the same delivery id', async () => {
    let answering = false;
    receiver.answer = () => (answering ? new Response(null, { status: 204 }) : new Promise<Response>(() => {}));
    const created = await trigger(hook('/killed'));
    const first = worker();
    const connections = Array.from({ length: 5 }, connectionId);
    for (const connection_id of connections) await emitEvent('connection_failed', { connection_id });
    await evaluate();
    await until(() => receiver.to('/killed').length >= 2);
    first.kill('SIGKILL');
    await first.exited;
    answering = true;
    const second = worker();
    const delivered = async () => (await deliveriesOf(created)).filter(({ status }) => status === 'delivered');
    await until(async () => (await delivered()).length === 5);
    second.kill('SIGKILL');
    await second.exited;
    const rows = await deliveriesOf(created);
    expect(rows).toHaveLength(5);
    const calls = receiver.to('/killed').map(idOf);
    expect(new Set(calls)).toEqual(new Set(rows.map(({ id }) => id)));
    expect(calls.length).toBeGreaterThan(5);
    // An attempt is counted before its call, so a killed one may be counted without a call.
    expect(rows.reduce((sum, { attempts }) => sum + attempts, 0)).toBeGreaterThanOrEqual(calls.length);
  });
});

describe('a delivery whose job was lost', () => {
  test('gets one new job', async () => {
    receiver.answer = () => new Response(null, { status: 204 });
    const created = await trigger(hook('/lost'));
    const group = { connection_id: connectionId() };
    await fire({ trigger: created, event: await event('connection_failed', group), group, kind: 'fired' });
    await deps.db.execute(sql`delete from pgboss.job where name = 'deliver_action'`);
    await deps.db
      .update(deliveries)
      .set({ next_attempt_at: new Date(Date.now() - 600_000).toISOString() })
      .where(eq(deliveries.trigger_id, created.id));
    const sent = await Promise.all(Array.from({ length: 3 }, () => resendLostDeliveries(deps.db, deps.queue)));
    expect(sent.toSorted()).toEqual([0, 0, 1]);
    const [jobs] = await deps.db.execute<{ count: number }>(
      sql`select count(*)::int as count from pgboss.job where name = 'deliver_action'`,
    );
    expect(jobs?.count).toBe(1);
  });

  test('is left alone before its time', async () => {
    const created = await trigger(hook('/waiting'));
    const group = { connection_id: connectionId() };
    await fire({ trigger: created, event: await event('connection_failed', group), group, kind: 'fired' });
    expect(await resendLostDeliveries(deps.db, deps.queue)).toBe(0);
  });
});

describe('a delivery whose workers died during its attempts', () => {
  const { signal } = new AbortController();
  const died = async (path: string, workers: number) => {
    const created = await trigger(hook(path));
    const group = { connection_id: connectionId() };
    await fire({ trigger: created, event: await event('connection_failed', group), group, kind: 'fired' });
    const [delivery] = await deliveriesOf(created);
    await deps.db
      .update(deliveries)
      .set({ unfinished_attempts: workers, attempts: workers })
      .where(eq(deliveries.id, delivery!.id));
    return { created, deliver: () => deliverActionJob(deps, delivery!.id, signal) };
  };

  test('three times fails, with an event, and is not sent again', async () => {
    const { created, deliver } = await died('/deadly', 3);
    await deliver();
    const [failed] = await deliveriesOf(created);
    expect(failed).toMatchObject({ status: 'failed', attempts: 4 });
    expect(failed?.error).toStartWith('worker_killed: The worker process ended in each of 3 attempts');
    expect(receiver.to('/deadly')).toEqual([]);
    const emitted = (await eventsOf('action_failed')).filter(({ payload }) => payload.trigger_id === created.id);
    expect(emitted).toHaveLength(1);
  });

  test('is sent again one at a time, and forgets them once an attempt ends', async () => {
    const first = Promise.withResolvers<Response>();
    const order: string[] = [];
    receiver.answer = (_, path) => {
      order.push(path);
      return path === '/first' ? first.promise : new Response(null, { status: 204 });
    };
    const [one, other] = [await died('/first', 2), await died('/second', 1)];
    const deliveredFirst = one.deliver();
    await until(() => order.length === 1);
    const deliveredSecond = other.deliver();
    // A delivery that did not wait for its turn would be on its way by now.
    await deliveriesOf(other.created);
    order.push('answer');
    first.resolve(new Response(null, { status: 500 }));
    await Promise.all([deliveredFirst, deliveredSecond]);
    expect(order).toEqual(['/first', 'answer', '/second']);
    expect(await deliveriesOf(one.created)).toMatchObject([{ status: 'retrying', unfinished_attempts: 0 }]);
    expect(await deliveriesOf(other.created)).toMatchObject([{ status: 'delivered' }]);
  });
});
