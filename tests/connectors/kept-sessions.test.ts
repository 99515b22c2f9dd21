import { afterAll, describe, expect, test } from 'bun:test';
import { KeptSessions } from '../../server/platform/net/kept-sessions.ts';
import type { ConnectorContext } from '../../server/connectors/contract/connector.ts';
import { MysqlSession } from '../../server/connectors/mysql/connection/session.ts';
import { PgSession } from '../../server/connectors/postgres/connection/session.ts';
import type { ServerSettings } from '../../server/connectors/postgres/connection/settings.ts';
import { until } from '../support/until.ts';
import { describeMysql, mysqlDatabase, sourceConfig as mysqlConfig } from './mysql-support.ts';
import { sourceConfig, twoDatabases } from './postgres-support.ts';

type PgContext = ConnectorContext<ServerSettings>;

const opened: KeptSessions[] = [];
afterAll(() => Promise.all(opened.map((kept) => kept.close())));

/** Contexts of one account connector, as its attempts have them. */
function keeper(limits: { idle_ms?: number; max?: number; passed_ms?: number } = {}) {
  const kept = new KeptSessions({ idle_ms: 60_000, max: 32, passed_ms: 60_000, ...limits });
  opened.push(kept);
  const reached: string[] = [];
  const reach = async (host: string) => void reached.push(host);
  const within = <Config>(ctx: ConnectorContext<Config>, id = 'one') => ({ ...ctx, sessions: kept.of(id, reach) });
  return { kept, reached, within };
}

test('a kept connection whose place may not be reached any more is closed', async () => {
  const kept = new KeptSessions();
  opened.push(kept);
  const sessions = kept.of('one', () => Promise.reject(new Error('blocked')));
  const client = { isOpen: true, isAlive: () => true, close: async () => void (client.isOpen = false) };
  sessions.keep('settings', client);
  await expect(sessions.take('settings', { host: 'db', port: 1 })).rejects.toThrow('blocked');
  expect(client.isOpen).toBeFalse();
});

describe('a session of PostgreSQL', () => {
  const sides = twoDatabases();
  const context = (side = sides.source) => sourceConfig(side).ctx as PgContext;
  const open = (ctx: PgContext) => PgSession.open(ctx, { phase: 'run' });
  const pidOf = async (session: PgSession) => (await session.query('select pg_backend_pid()')).rows[0]![0]!;
  /** Opens and closes a session. */
  const pass = async (ctx: PgContext, work?: (session: PgSession) => Promise<unknown>) => {
    const session = await open(ctx);
    const pid = await pidOf(session);
    await work?.(session);
    await session.close();
    return pid;
  };

  test('goes on with the connection of the one before, which is as new', async () => {
    const { within, reached } = keeper();
    const ctx = within(context());
    const first = await pass(ctx, async (session) => {
      await session.query("set datestyle = 'German'");
      await session.query('select pg_advisory_lock(4711)');
      await session.query('create temp table leftover (a int)');
      await session.query('begin');
      await session.query('create table never (a int)');
    });
    const session = await open(ctx);
    expect(await pidOf(session)).toBe(first);
    const { rows } = await session.query(
      "select current_setting('datestyle'), to_regclass('leftover'), to_regclass('never'), pg_try_advisory_lock(4712)::text",
    );
    expect(rows).toEqual([['ISO, YMD', null, null, 'true']]);
    expect(await sides.source.sql`select pg_try_advisory_lock(4711) as free`).toMatchObject([{ free: true }]);
    await session.close();
    expect(reached).toHaveLength(1);
  });

  test('goes on within an attempt as the one before has left it, and resets it for another attempt', async () => {
    const { within, kept } = keeper();
    const attempt = within(context());
    const catalog = () => PgSession.open(attempt, { phase: 'run', reads_catalog: true });
    const first = await catalog();
    const pid = await pidOf(first);
    await first.query('select pg_advisory_lock(4713)');
    await first.close();
    const isFree = async () => (await sides.source.sql`select pg_try_advisory_lock_shared(4713) as free`)[0]!.free;
    // Nobody else gets the connection before it is reset.
    expect(await pass(within(context()))).not.toBe(pid);
    expect(await isFree()).toBeFalse();
    const second = await catalog();
    expect(await pidOf(second)).toBe(pid);
    await second.close();
    await attempt.sessions.settle();
    expect(await isFree()).toBeTrue();
    await kept.close();
    await until(async () => (await listed(pid)) === 0);
  });

  test('is reset after a while if the attempt does not go on with it', async () => {
    const { within } = keeper({ passed_ms: 1 });
    const session = await PgSession.open(within(context()), { phase: 'run', reads_catalog: true });
    const pid = await pidOf(session);
    await session.query('select pg_advisory_lock(4714)');
    await session.close();
    await until(async () => (await sides.source.sql`select pg_try_advisory_lock(4714) as free`)[0]!.free);
    expect(await pass(within(context()))).toBe(pid);
  });

  test('is reset at once if a transaction is open', async () => {
    const { within } = keeper();
    const session = await PgSession.open(within(context()), { phase: 'run', reads_catalog: true });
    await session.query('begin; create table unfinished (a int)');
    await session.close();
    expect(await sides.source.sql`select to_regclass('unfinished') as found`).toMatchObject([{ found: null }]);
  });

  test('passes on no role, setting, statement, cursor, channel or sequence', async () => {
    const ctx = keeper().within(context());
    const state = async (session: PgSession) => [
      (await session.query('select current_user, session_user')).rows,
      (await session.query('select name, setting from pg_settings order by 1')).rows,
      (await session.query('select count(*) from pg_prepared_statements')).rows,
      (await session.query('select count(*) from pg_cursors')).rows,
      (await session.query('select count(*) from pg_listening_channels()')).rows,
    ];
    const dirtied = await pass(ctx, async (session) => {
      // As functions in a query of a user can: no statement of the service sets them.
      await session.query("select set_config('search_path', 'elsewhere', false), set_config('work_mem', '1MB', false)");
      await session.query("select set_config('default_transaction_read_only', 'on', false)");
      await session.query('prepare left_over as select 1');
      await session.query('declare left_over cursor with hold for select 1');
      await session.query('listen left_over');
      await session.query(
        'begin read write; create sequence public.left_over; select nextval($$public.left_over$$); commit',
      );
      await session.query("select set_config('role', 'pg_monitor', false)");
    });
    const [fresh, session] = [await open(context()), await open(ctx)];
    expect(await pidOf(session)).toBe(dirtied);
    expect(await state(session)).toEqual(await state(fresh));
    await expect(session.query('select lastval()')).rejects.toThrow('lastval');
    await Promise.all([session.close(), fresh.close()]);
  });

  test('does not share its connection while it is open', async () => {
    const { within } = keeper();
    const ctx = within(context());
    await pass(ctx);
    const [one, two] = await Promise.all([open(ctx), open(ctx)]);
    expect(await pidOf(one)).not.toBe(await pidOf(two));
    await Promise.all([one.close(), two.close()]);
  });

  test.each<[string, (of: ReturnType<typeof keeper>) => [before: PgContext, after: PgContext]]>([
    ['another account connector', ({ within }) => [within(context(), 'one'), within(context(), 'two')]],
    ['another database', ({ within }) => [within(context()), within(context(sides.destination))]],
    [
      'other settings',
      ({ within }) => {
        const ctx = context();
        return [within(ctx), within({ ...ctx, config: { ...ctx.config, statement_timeout_seconds: 77 } })];
      },
    ],
    ['a test of the settings', ({ within }) => [within(context()), context()]],
  ])('logs in for %s', async (_, contexts) => {
    const [before, after] = contexts(keeper());
    const first = await pass(before);
    expect(await pass(after)).not.toBe(first);
  });

  test('is not kept after an error', async () => {
    const ctx = keeper().within(context());
    const first = await pass(ctx, (session) => session.query('select 1 / 0').catch(() => {}));
    expect(await pass(ctx)).not.toBe(first);
  });

  test('logs in when the server has closed the kept connection', async () => {
    const ctx = keeper().within(context());
    const first = await pass(ctx);
    await sides.source.sql`select pg_terminate_backend(${first}::int, 5000)`;
    // The end of the connection may arrive after the answer on the other one.
    await until(async () => (await pass(ctx).catch(() => first)) !== first);
  });

  const listed = async (pid: string) =>
    (await sides.source.sql`select 1 from pg_stat_activity where pid = ${pid}`).length;

  test('lets go of a connection that no run has used for a while', async () => {
    const first = await pass(keeper({ idle_ms: 1, max: 1 }).within(context()));
    await until(async () => (await listed(first)) === 0);
  });

  test('keeps no more connections than allowed, and none after the end', async () => {
    const { within, kept } = keeper({ idle_ms: 60_000, max: 1 });
    const [one, two] = [await pass(within(context(), 'one')), await pass(within(context(), 'two'))];
    await until(async () => (await listed(one)) === 0);
    expect(await listed(two)).toBe(1);
    await kept.close();
    const three = await pass(within(context()));
    await until(async () => (await listed(two)) + (await listed(three)) === 0);
  });
});

describeMysql('a session of MySQL', () => {
  const database = mysqlDatabase();

  test('goes on with the connection of the one before, which is as new', async () => {
    const ctx = keeper().within(mysqlConfig(database).ctx);
    await database.sql('create table kept (a int) engine = innodb');
    const idOf = async (session: MysqlSession) => (await session.query('select connection_id()')).rows[0]![0];
    const first = await MysqlSession.open(ctx, { phase: 'run' });
    const id = await idOf(first);
    await first.query("set time_zone = '+05:00', @left = 1");
    await first.query("select get_lock('leftover', 0)");
    await first.query('start transaction');
    await first.query('insert into kept values (1)');
    await first.close();
    const second = await MysqlSession.open(ctx, { phase: 'run' });
    expect(await idOf(second)).toBe(id);
    const { rows } = await second.query(
      "select @@time_zone, @left, is_free_lock('leftover'), (select count(*) from kept), @@character_set_client",
    );
    expect(rows).toEqual([['+00:00', null, '1', '0', 'utf8mb4']]);
    await second.close();
  });
});
