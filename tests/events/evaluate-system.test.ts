import { describe, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import { triggers } from '../../db/schema/index.ts';
import { ensureSystemTriggers } from '../../server/automation/triggers/system-triggers.ts';
import { evaluationBench } from './evaluate-support.ts';

const { server, casesOf, evaluate, happen } = await evaluationBench();
const { db } = server.deps;
const connection = () => Bun.randomUUIDv7();

const system = async (system_key: string) => {
  const key = and(eq(triggers.account_id, server.account_id), eq(triggers.system_key, system_key));
  const [row] = await db.select().from(triggers).where(key);
  if (!row) throw new Error(`no system trigger ${system_key}`);
  return row;
};

describe('system triggers', () => {
  test('are created once, and keep the changes of the account', async () => {
    const { id } = await system('plan_limit');
    await db.update(triggers).set({ enabled: false }).where(eq(triggers.id, id));
    await ensureSystemTriggers(db, server.account_id);
    const after = await system('plan_limit');
    expect([after.id, after.enabled]).toEqual([id, false]);
    await db.update(triggers).set({ enabled: true }).where(eq(triggers.id, id));
  });

  test('a failed run opens a case, the next success resolves it; connections without notifications are left out', async () => {
    const [loud, silent] = [connection(), connection()];
    await happen({ event: 'connection_failed', connection_id: loud, payload: { notify_on_failure: true } });
    await happen({
      event: 'connection_partially_failed',
      connection_id: silent,
      payload: { notify_on_failure: false },
    });
    await evaluate();
    const { id } = await system('connection_failed');
    expect((await casesOf(id)).map((one) => [one.group, one.status])).toEqual([[{ connection_id: loud }, 'open']]);
    await happen({ event: 'connection_succeeded', connection_id: loud });
    await evaluate();
    expect((await casesOf(id)).map((one) => [one.status, one.resolution])).toEqual([['resolved', 'auto']]);
  });

  test('a dropped table opens one case, by the run or by the discovery that finds it', async () => {
    const [by_run, by_discovery, silent] = [connection(), connection(), connection()];
    const all: Parameters<typeof happen>[0][] = [
      { event: 'connection_failed', connection_id: by_run, payload: { notify_on_failure: true } },
      ...[by_run, by_discovery, silent].flatMap((connection_id) => [
        {
          event: 'schema_change_breaking' as const,
          connection_id,
          payload: { found_by_run: connection_id !== by_discovery, notify_on_failure: connection_id !== silent },
        },
        {
          event: 'connection_auto_disabled' as const,
          connection_id,
          payload: { status_reason: 'breaking_schema_change' },
        },
      ]),
    ];
    for (const one of all) await happen(one);
    await evaluate();
    const keys = ['connection_failed', 'breaking_schema_change', 'connection_auto_disabled'];
    const cases = await Promise.all(keys.map(async (key) => casesOf((await system(key)).id)));
    const opened = (id: string) =>
      keys.filter((_key, at) => cases[at]!.some(({ group }) => group['connection_id'] === id));
    expect([by_run, by_discovery, silent].map(opened)).toEqual([
      ['connection_failed'],
      ['breaking_schema_change'],
      ['breaking_schema_change'],
    ]);
  });

  test.each([
    ['connection_auto_disabled', 'connection_auto_disabled', 'connection_resumed', {}],
    ['breaking_schema_change', 'schema_change_breaking', 'connection_resumed', {}],
    ['plan_limit', 'plan_limit_reached', null, { limit: 'max_connections' }],
    ['plan_limit', 'plan_limit_warning', null, { limit: 'max_users' }],
    ['api_key_expiring', 'api_key_expiring', 'api_key_rotated', { user_id: connection() }],
    ['configuration_drift', 'configuration_drifted', 'configuration_matched', { file: 'a.yaml', owner: null }],
  ] as const)('%s: %s opens a case, %s resolves it', async (key, problem, recovery, payload) => {
    const connection_id = connection();
    await happen({ event: problem, connection_id, payload });
    await evaluate();
    const { id } = await system(key);
    expect((await casesOf(id)).at(-1)?.status).toBe('open');
    if (recovery === null) return;
    await happen({ event: recovery, connection_id, payload });
    await evaluate();
    expect((await casesOf(id)).at(-1)?.status).toBe('resolved');
  });
});
