import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import postgres from 'postgres';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../db/embedded.ts';
import type { SourceOrigin, StreamState } from '../../server/connectors/contract/connector.ts';
import { identityOf } from '../../server/connectors/postgres/cdc/log-identity.ts';
import { slotName } from '../../server/connectors/postgres/cdc/replication-slots.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { until } from '../support/until.ts';
import { followers } from './postgres-cdc-support.ts';
import { readAll, requestOf, sourceConfig } from './postgres-support.ts';
import { errorOf } from './writing.ts';

const { sides, follow } = followers();
const sql = (text: string) => sides.source.sql.unsafe(text);

describe('a publication that an operator altered', () => {
  const altered = (how: string, publication: string, table: string) =>
    how.replaceAll('PUBLICATION', publication).replaceAll('TABLE_OF', table);

  test.each([
    [
      'no_updates',
      "alter publication PUBLICATION set (publish = 'insert')",
      /no longer publishes updates, deletes, truncates/,
    ],
    ['row_filter', 'alter publication PUBLICATION set table TABLE_OF where (id > 3)', /has a row filter/],
    ['column_list', 'alter publication PUBLICATION set table TABLE_OF (id)', /has a column list/],
    [
      'more_tables',
      'create table extra (id int); alter publication PUBLICATION add table extra',
      /contains other tables/,
    ],
    [
      'altered_back',
      "alter publication PUBLICATION set (publish = 'insert'); update TABLE_OF set name = 'unseen'; alter publication PUBLICATION set (publish = 'insert, update, delete, truncate')",
      /was altered after the last run/,
    ],
  ])('%s: the run fails, and nothing is confirmed', async (table, how, message) => {
    await sql(`create table ${table} (id int primary key, name text); insert into ${table} values (1, 'a'), (2, 'b')`);
    const follower = await follow(table);
    await follower.run();
    const name = slotName(follower.reader_id);
    const confirmed = async () =>
      (
        await sides.source
          .sql`select confirmed_flush_lsn::text as lsn from pg_replication_slots where slot_name = ${name}`
      )[0]!.lsn;
    const before = await confirmed();
    await sql(altered(how, name, table));
    await sql(`update ${table} set name = 'c'`);
    const error = await errorOf(follower.run());
    expect(error!.code).toBe('publication_altered');
    expect(error!.message).toMatch(message);
    expect(error!.message).toContain('Reset');
    expect(await confirmed()).toBe(before);
    follower.state = null;
    await follower.run();
    await sql(`update ${table} set name = 'd'`);
    expect((await follower.run()).rows_updated).toBe(2);
  });

  test('a table with other comments and grants is read on', async () => {
    await sql('create table described (id int primary key)');
    const follower = await follow('described');
    await follower.run();
    for (let id = 1; id < 4; id += 1) {
      await sql(`insert into described values (${id}); comment on table described is 'read ${id}'`);
      expect((await follower.run()).rows_loaded).toBe(1);
    }
  });
});

describe('a source that was set back to an older copy of itself', () => {
  const dataDir = temporaryFolder();
  const reader_id = crypto.randomUUID();
  let server: EmbeddedPostgres;
  let data = '';
  afterAll(async () => {
    await server.stop();
    rmSync(dirname(data), { recursive: true, force: true });
  });

  const start = async () => void (server = await startEmbeddedPostgres({ dataDir }));
  const query = async (text: string) => {
    const client = postgres(server.url('warehouse'), { max: 1, onnotice: () => {} });
    try {
      return await client.unsafe(text);
    } finally {
      await client.end();
    }
  };
  const add = (rows: number) =>
    query(
      `insert into orders select n + i from (select coalesce(max(id), 0) n from orders) t, generate_series(1, ${rows}) i`,
    );
  async function read(state: StreamState | null) {
    const url = new URL(server.url('warehouse'));
    const side = {
      sql: null as never,
      server: {
        host: url.hostname,
        port: Number(url.port),
        database: 'warehouse',
        username: 'postgres',
        password: url.password,
      },
    };
    const { ctx } = sourceConfig(side, { replication: 'logical' });
    const stream = (await postgresSource.discover(ctx)).find(({ name }) => name === 'orders')!;
    const request = requestOf(stream, { sync_mode: 'incremental', state, reader_id });
    const found = await readAll(ctx, request);
    await postgresSource.acknowledge!(ctx, request, found.state!);
    return found.state!;
  }

  /** What a cursor read stores about the server. */
  async function origins(replication: 'cursor' | 'reader' = 'cursor') {
    const url = new URL(server.url('warehouse'));
    const { hostname: host, port, username, password } = url;
    const login = replication === 'reader' ? { username: 'reader', password: 'reader' } : { username, password };
    const side = { sql: null as never, server: { host, port: Number(port), database: 'warehouse', ...login } };
    const { ctx } = sourceConfig(side, {});
    const { find, compare } = postgresSource.origin!;
    return { found: await find(ctx), since: async (known: SourceOrigin) => compare(ctx, known, (await find(ctx))!) };
  }

  /** The states after the copy was taken, and after changes that the copy lacks. */
  const states = {} as { copied: StreamState; lost: StreamState };
  const cursors = {} as { copied: SourceOrigin; lost: SourceOrigin };
  beforeAll(async () => {
    await start();
    await query('create table orders (id int primary key)');
    await add(10);
    const first = await read(null);
    await add(10);
    states.copied = await read(first);
    await query("create role reader login password 'reader'");
    cursors.copied = (await origins()).found!;
    [{ data }] = (await query("select current_setting('data_directory') as data")) as unknown as [{ data: string }];
    await server.stop();
    Bun.spawnSync(['cp', '-a', data, `${data}.copy`]);
    await start();
    await add(10);
    states.lost = await read(states.copied);
    cursors.lost = (await origins()).found!;
    await server.stop();
  }, 60_000);

  async function restore(standby = false): Promise<void> {
    await server.stop();
    rmSync(data, { recursive: true });
    Bun.spawnSync(['cp', '-a', `${data}.copy`, data]);
    if (standby) writeFileSync(join(data, 'standby.signal'), '');
  }

  test('is refused at once, also after its log has grown beyond the old position', async () => {
    await restore();
    await start();
    const short = await errorOf(read(states.lost));
    expect(short!.code).toBe('source_went_back');
    expect(short!.message).toContain(`it was read up to ${states.lost.cursor}`);
    const { since } = await origins();
    expect(await since(cursors.copied)).toMatchObject({ history: 'kept' });
    const { history, difference } = await since(cursors.lost);
    expect(history).toBe('lost');
    expect(difference).toContain(`was read when the log was at ${String(cursors.lost.position)}`);
    await query('create table filler as select generate_series(1, 20000)');
    const grown = await errorOf(read(states.lost));
    expect(grown!.code).toBe('source_went_back');
    expect(grown!.message).toMatch(/up to read \d+, and read \d+ reached/);
    // The rows of the copy were read from the same history.
    expect((await read(states.copied)).cursor).toMatch(/\//);
  }, 60_000);

  test('another server is refused', async () => {
    const source = { ...identityOf(states.copied), system_identifier: '7' };
    const error = await errorOf(read({ ...states.copied, source }));
    expect(error!.code).toBe('source_went_back');
    expect(error!.message).toContain('was read from the server 7');
    const { since } = await origins();
    const other = await since({ ...cursors.copied, system_identifier: '7' });
    expect(other).toMatchObject({ history: 'lost', difference: expect.stringContaining('from the server 7, and') });
  });

  test('a standby that is promoted goes on where the old primary was read, and not beyond', async () => {
    await restore(true);
    await start();
    // It may lag behind the server that was read before, without any sign of it.
    const standby = await (await origins()).since(cursors.lost);
    expect(standby).toMatchObject({ history: 'kept', origin: cursors.lost });
    await query('select pg_promote()');
    await until(async () => (await query('select pg_is_in_recovery() as standby'))[0]!.standby === false);
    await query('create table filler as select generate_series(1, 20000)');
    const beyond = await errorOf(read(states.lost));
    expect(beyond!.code).toBe('source_went_back');
    expect(beyond!.message).toContain('timeline 1');
    for (const login of ['cursor', 'reader'] as const) {
      const { since, found } = await origins(login);
      expect(found!.timeline).toBe(2);
      // Only a role that may replicate can see where the timelines part.
      expect((await since(cursors.copied)).history).toBe(login === 'cursor' ? 'kept' : 'unknown');
      expect((await since(cursors.lost)).history).toBe('unknown');
    }
    await add(5);
    expect(identityOf(await read(states.copied))!.timeline).toBe(2);
  }, 60_000);
});
