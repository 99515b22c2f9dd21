import { describe, expect, test } from 'bun:test';
import { and, count, eq, like } from 'drizzle-orm';
import { events } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf, uniqueName } from '../support/resources.ts';

const service = await testDeps();
const api = testApi(service);
const { call } = api;
const make = makerOf(call);

async function changesReported(): Promise<number> {
  const changes = and(eq(events.account_id, service.account_id), like(events.event, '%_updated'));
  const [row] = await service.deps.db.select({ all: count() }).from(events).where(changes);
  return row!.all;
}

const schedule = { type: 'cron', cron_expression: '0 6 * * *', timezone: 'Europe/Berlin' };
const RULE = 'event == "connection_failed"';
const HOOK = { type: 'call_webhook', url: 'https://example.com/hook', secret: 'a secret of enough characters' };

/** The path of an object to read and to update. */
const OBJECTS: [what: string, create: () => Promise<{ get: string; update: string }>][] = [
  [
    'a connection with schedule and streams',
    async () => {
      const { id } = await make.connection({ schedule, tags: ['a'] });
      return { get: `/connections/${id}`, update: `/connections/${id}` };
    },
  ],
  [
    'a source',
    async () => {
      const { id } = await make.source({ token: 'a-token-that-stays' });
      return { get: `/account_connectors/source/${id}`, update: `/account_connectors/${id}` };
    },
  ],
  ...[{ rule: RULE }, { condition: { variable: 'event', operator: 'eq', value: 'user_added' } }].map(
    (rule): [string, () => Promise<{ get: string; update: string }>] => [
      `a trigger with a ${Object.keys(rule)[0]}`,
      async () => {
        const created = await call('POST', '/automation/triggers', {
          name: uniqueName('trigger'),
          actions: [HOOK],
          case: { auto_resolve: false },
          ...rule,
        });
        const path = `/automation/triggers/${created.body.id}`;
        return { get: path, update: path };
      },
    ],
  ),
  [
    'a system trigger',
    async () => {
      const { body } = await call('GET', '/automation/triggers?include_system=true');
      const path = `/automation/triggers/${body.find((one: { is_system: boolean }) => one.is_system).id}`;
      return { get: path, update: path };
    },
  ],
  [
    'a user',
    async () => {
      const path = `/users/${service.user_id}`;
      return { get: path, update: path };
    },
  ],
  [
    'a role',
    async () => {
      const { body } = await call('POST', '/roles', { name: uniqueName('role'), permissions: ['connections.run'] });
      return { get: `/roles/${body.id}`, update: `/roles/${body.id}` };
    },
  ],
];

describe('what is read can be written:', () => {
  test.each(OBJECTS)('%s, which changes nothing and reports nothing', async (_, create) => {
    const { get, update } = await create();
    const before = (await call('GET', get)).body;
    const reported = await changesReported();
    const { status, body } = await call('POST', update, before);
    expect([status, body]).toEqual([200, before]);
    expect((await call('GET', get)).body).toEqual(before);
    expect(await changesReported()).toBe(reported);
  });

  test('the onboarding state, but for the time of the answer', async () => {
    await call('PUT', '/users/me/onboarding-state', { completed_steps: ['profile'] });
    const state = (await call('GET', '/users/me')).body.onboarding_state;
    expect(await call('PUT', '/users/me/onboarding-state', state)).toMatchObject({ status: 200, body: state });
  });

  test('a schedule and streams as read, in a new connection', async () => {
    const { body } = await call('GET', `/connections/${(await make.connection({ schedule })).id}`);
    const { source_id, destination_id, streams } = body;
    const copy = { name: uniqueName('copy'), source_id, destination_id, schedule: body.schedule, streams };
    const created = await call('POST', '/connections', { ...copy, table_prefix: 'copy_' });
    expect(created).toMatchObject({ status: 201, body: { schedule: { cron_expression: '0 6 * * *' } } });
  });

  test('422 for other unknown keys, and for a body of read-only keys alone', async () => {
    const path = `/connections/${(await make.connection()).id}`;
    const unknown = await call('POST', path, { schedule: { type: 'manual', next_run: [] } });
    expect(unknown.body.detail).toMatchObject([{ loc: ['body', 'schedule', 'next_run'], type: 'extra_forbidden' }]);
    expect((await call('POST', path, { id: 'x', health: 'failing' })).status).toBe(422);
  });
});

test('a wrong operator of a condition is reported with the operators that are allowed', async () => {
  const condition = { all: [{ variable: 'event', operator: 'equals', value: 'user_added' }] };
  const { status, body } = await call('POST', '/automation/evaluate_automator_rule', { condition });
  expect(status).toBe(422);
  expect(body.detail).toEqual([
    {
      loc: ['body', 'condition', 'all', 0, 'operator'],
      msg: expect.stringContaining('eq, ne, gt, gte'),
      type: 'enum',
    },
  ]);
});
