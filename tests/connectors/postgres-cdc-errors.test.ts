import { afterAll, describe, expect, test } from 'bun:test';
import type { Batch, StreamState } from '../../server/connectors/contract/connector.ts';
import { ConfigurationError, SchemaChangedError } from '../../server/connectors/contract/errors.ts';
import { slotName } from '../../server/connectors/postgres/cdc/replication-slots.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { type Cluster, startCluster } from '../bench/cluster.ts';
import { followers } from './postgres-cdc-support.ts';
import { requestOf, sourceConfig } from './postgres-support.ts';
import { errorOf } from './writing.ts';

const { sides, follow, discovered } = followers();
const sql = (text: string) => sides.source.sql.unsafe(text);

const clusters: Cluster[] = [];
afterAll(() => Promise.all(clusters.map((cluster) => cluster.stop())));
/** A separate server, with settings that the shared one must not have. */
async function ownServer(settings: string[]) {
  const cluster = await startCluster(settings);
  clusters.push(cluster);
  cluster.psql('src', 'create table things (id int primary key)');
  const { host, port, password } = cluster;
  const server = { host, port, password, username: cluster.username, database: 'src', ssl_mode: 'disable' as const };
  return { cluster, source: () => sourceConfig({ sql: null as never, server }, { replication: 'logical' }) };
}
let oneSlot: ReturnType<typeof ownServer> | undefined;
const replicating = () =>
  (oneSlot ??= ownServer(['wal_level=logical', 'max_replication_slots=1', 'max_prepared_transactions=1']));
async function readOnce(
  source: ReturnType<typeof sourceConfig>,
  reader_id = crypto.randomUUID(),
  state: StreamState | null = null,
): Promise<Batch[]> {
  const [stream] = await postgresSource.discover(source.ctx);
  const batches: Batch[] = [];
  for await (const batch of postgresSource.read(
    source.ctx,
    requestOf(stream!, { sync_mode: 'incremental', reader_id, state }),
  ))
    batches.push(batch);
  return batches;
}

describe('errors of CDC name the cause', () => {
  test('a missing or advanced slot, and a missing publication', async () => {
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

  test('a table without a replica identity, or one that lacks the key; a missing column', async () => {
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

  test('wal_level, also reported by the check', async () => {
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

  test('a prepared transaction arrives once it is committed, and not before', async () => {
    const { cluster, source } = await replicating();
    const reader_id = crypto.randomUUID();
    const read = async (state: StreamState | null) => {
      const batches = await readOnce(source(), reader_id, state);
      return { ids: batches.flatMap(({ rows }) => rows.map(([id]) => id)), state: batches.at(-1)!.state! };
    };
    const first = await read(null);
    cluster.psql('src', "begin; insert into things values (1); prepare transaction 'undecided'");
    cluster.psql('src', 'insert into things values (2)');
    const second = await read(first.state);
    expect(second.ids).toEqual(['2']);
    cluster.psql('src', "commit prepared 'undecided'");
    expect((await read(second.state)).ids).toEqual(['1']);
    await postgresSource.release!(source().ctx, reader_id);
    cluster.psql('src', 'truncate things');
  });

  test('no free slot, and a user without the REPLICATION attribute', async () => {
    const { cluster, source } = await replicating();
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
