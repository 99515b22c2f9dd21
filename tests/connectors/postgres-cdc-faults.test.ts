import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import postgres from 'postgres';
import type { Batch } from '../../server/connectors/define.ts';
import { ConfigurationError, SchemaChangedError } from '../../server/connectors/errors.ts';
import { slotName } from '../../server/connectors/postgres/replication-slots.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { type Cluster, startCluster } from '../bench/cluster.ts';
import { until } from '../support/until.ts';
import { followers } from './postgres-cdc-support.ts';
import { requestOf, sourceConfig } from './postgres-support.ts';

// The machine may be busy with other tests.
setDefaultTimeout(90_000);

const { sides, follow, both, context, discovered } = followers();
const sql = (text: string) => sides.source.sql.unsafe(text);
const errorOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error as Error & { code: string },
  );

const clusters: Cluster[] = [];
afterAll(() => Promise.all(clusters.map((cluster) => cluster.stop())));
/** A server of its own, with settings that the tests' one must not have. */
async function ownServer(settings: string[]) {
  const cluster = await startCluster(settings);
  clusters.push(cluster);
  cluster.psql('src', 'create table things (id int primary key)');
  const { host, port, password } = cluster;
  const server = { host, port, password, username: cluster.username, database: 'src', ssl_mode: 'disable' as const };
  return { cluster, source: () => sourceConfig({ sql: null as never, server }, { replication: 'logical' }) };
}
async function readOnce(source: ReturnType<typeof sourceConfig>, reader_id = crypto.randomUUID()): Promise<Batch[]> {
  const [stream] = await postgresSource.discover(source.ctx);
  const batches: Batch[] = [];
  for await (const batch of postgresSource.read(
    source.ctx,
    requestOf(stream!, { sync_mode: 'incremental', reader_id }),
  ))
    batches.push(batch);
  return batches;
}

describe('nothing is lost or doubled', () => {
  test('while others write during the snapshot and between the runs', async () => {
    await sql(`create table busy (id int primary key, n int, filler text);
      insert into busy select g, 0, repeat('x', 200) from generate_series(1, 20000) g`);
    const { host, port, database, username, password } = sides.source.server;
    const writer = postgres({ host, port, database, username, password, max: 3, onnotice: () => {} });
    const stop = new AbortController();
    let next = 20_000;
    const write = async () => {
      while (!stop.signal.aborted) {
        const id = 1 + Math.floor(Math.random() * 20_000);
        await writer`update busy set n = n + 1 where id = ${id}`;
        await writer`insert into busy values (${++next}, 1, 'new')`;
        await writer`delete from busy where id = ${1 + Math.floor(Math.random() * next)}`;
        await writer`update busy set id = ${++next} where id = ${1 + Math.floor(Math.random() * 20_000)}`;
      }
    };
    const writers = [write(), write(), write()];
    const follower = await follow('busy');
    await follower.run();
    for (let run = 0; run < 4; run += 1) await follower.run();
    stop.abort();
    await Promise.all(writers);
    await follower.run();
    await writer.end();
    const after = await both('busy');
    expect(after.destination).toEqual(after.source);
    expect(next).toBeGreaterThan(20_010);
  });

  test('when the acknowledgement is lost after the commit, and when the slot still has an old reader', async () => {
    await sql(
      `create table unacknowledged (id int primary key, name text); insert into unacknowledged values (1, 'a')`,
    );
    const follower = await follow('unacknowledged', { mode: 'append' });
    await follower.run();
    await sql(`insert into unacknowledged values (2, 'b')`);
    const acknowledge = postgresSource.acknowledge;
    postgresSource.acknowledge = async () => ({ bytes: 0, is_high: false });
    await follower.run().finally(() => (postgresSource.acknowledge = acknowledge));
    await sql(`insert into unacknowledged values (3, 'c')`);
    // A reader that froze in the middle of its work.
    const frozen = context();
    const stream = await discovered('unacknowledged');
    const request = requestOf(stream, {
      sync_mode: 'incremental',
      reader_id: follower.reader_id,
      state: follower.state,
    });
    const reading = postgresSource.read(frozen.ctx, request)[Symbol.asyncIterator]();
    await reading.next();
    await follower.run();
    await reading.return?.();
    const rows = await sides.destination.sql`select id from unacknowledged where id is not null order by id`;
    expect(rows.map(({ id }) => id)).toEqual([1, 2, 3]);
  });

  test('by a read that is broken off: the next one goes on from the same place', async () => {
    await sql(`create table broken (id int primary key, filler text)`);
    const follower = await follow('broken');
    await follower.run();
    await sql(`insert into broken select g, repeat('y', 500) from generate_series(1, 40000) g`);
    const stopped = context();
    const request = requestOf(await discovered('broken'), {
      sync_mode: 'incremental',
      reader_id: follower.reader_id,
      state: follower.state,
    });
    const reading = postgresSource.read(stopped.ctx, request)[Symbol.asyncIterator]();
    await reading.next();
    stopped.abort.abort(new Error('stopped'));
    expect((await errorOf(reading.next()))?.message).toBe('stopped');
    await until(async () => {
      const [slot] = await sql(
        `select active from pg_replication_slots where slot_name = '${slotName(follower.reader_id)}'`,
      );
      return slot!.active === false;
    });
    expect(await follower.run()).toMatchObject({ rows_loaded: 40_000 });
  });

  test('a large transaction comes in bounded batches, with a state only at its end', async () => {
    await sql(`create table large (id int primary key, filler text)`);
    const follower = await follow('large');
    await follower.run();
    await sql(`insert into large select g, repeat('z', 100) from generate_series(1, 60000) g`);
    await sql(`insert into large values (0, 'last')`);
    const batches = await follower.read();
    expect(batches.reduce((sum, { rows }) => sum + rows.length, 0)).toBe(60_001);
    expect(Math.max(...batches.map(({ bytes }) => bytes))).toBeLessThan(2_200_000);
    expect(batches.length).toBeGreaterThan(2);
    expect(batches.findIndex(({ state }) => state !== undefined)).toBeGreaterThanOrEqual(batches.length - 2);
  });
});

describe('what cannot be followed is said', () => {
  test('a slot that is gone, was moved on, or a publication that is', async () => {
    await sql('create table lost (id int primary key)');
    const follower = await follow('lost');
    await follower.run();
    const name = slotName(follower.reader_id);
    await sides.source.sql.begin((tx) => tx.unsafe('set local synchronous_commit = on; insert into lost values (1)'));
    await sql(`select pg_replication_slot_advance('${name}', pg_current_wal_lsn())`);
    const ahead = await errorOf(follower.run());
    expect(ahead).toBeInstanceOf(ConfigurationError);
    expect(ahead!.code).toBe('replication_slot_ahead');
    await sql(`select pg_drop_replication_slot('${name}')`);
    expect((await errorOf(follower.run()))!.code).toBe('replication_slot_missing');
    follower.state = null;
    await follower.run();
    await sql('drop table lost; create table lost (id int primary key)');
    expect((await errorOf(follower.run()))!.code).toBe('publication_missing');
    follower.state = null;
    await sql('insert into lost values (7)');
    await follower.run();
    expect((await sides.destination.sql`select id from lost`).map(({ id }) => id)).toEqual([7]);
    follower.state = { cursor: 'yesterday' };
    expect((await errorOf(follower.run()))!.code).toBe('invalid_cursor');
  });

  test('a table without a replica identity, or with one that lacks the key; a column that is gone', async () => {
    await sql('create table identity (id int primary key, name text not null unique, more int)');
    const stream = await discovered('identity');
    const follower = await follow('identity');
    await follower.run();
    await sql('alter table identity replica identity nothing');
    expect((await errorOf(follower.run({ stream })))!.code).toBe('replica_identity_missing');
    await sql('alter table identity replica identity using index identity_name_key');
    const narrow = await errorOf(follower.run({ stream, primary_key: [['id']] }));
    expect(narrow!.code).toBe('replica_identity_insufficient');
    expect(narrow!.message).toContain('id');
    await sql('alter table identity replica identity full; alter table identity drop more');
    const columns = stream.fields.slice(0, 3).map((field) => ({ field, masking: 'none' as const }));
    const gone = await errorOf(follower.run({ stream, columns }));
    expect(gone).toBeInstanceOf(SchemaChangedError);
    expect(gone!.code).toBe('column_missing');
  });

  test('wal_level, also by the check of the settings', async () => {
    const { source } = await ownServer([]);
    const error = await errorOf(readOnce(source()));
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error!.code).toBe('wal_level_not_logical');
    const { checks } = await postgresSource.check(source().ctx);
    expect(checks.find(({ title }) => title === 'Logical replication')).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('wal_level is replica'),
    });
  });

  test('no slot free, no right to replicate; PostgreSQL 15 does the rest', async () => {
    const { cluster, source } = await ownServer(['wal_level=logical', 'max_replication_slots=1']);
    const reader_id = crypto.randomUUID();
    const batches = await readOnce(source(), reader_id);
    expect(batches.at(-1)!.state!.cursor).toMatch(/\//);
    expect((await errorOf(readOnce(source())))!.code).toBe('no_replication_slot_free');
    await postgresSource.release!(source().ctx, reader_id);
    await postgresSource.release!(source().ctx, reader_id);
    cluster.psql(
      'src',
      "create role plain login password 'bench'; alter table things owner to plain; grant create on database src to plain",
    );
    const { host, port, password } = cluster;
    const server = { host, port, password, username: 'plain', database: 'src', ssl_mode: 'disable' as const };
    const plain = () => sourceConfig({ sql: null as never, server }, { replication: 'logical' });
    expect((await errorOf(readOnce(plain())))!.code).toBe('replication_not_permitted');
    const { checks } = await postgresSource.check(plain().ctx);
    expect(checks.find(({ title }) => title === 'Logical replication')!.status).toBe('failed');
  });
});
