import { afterEach, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { streamRuns } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { followedTables } from '../support/followed-tables.ts';
import { rpc, rpcQuery } from '../support/rpc.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ config: { RETRY_BACKOFF_SECONDS: 0 } });
const { call } = testApi(service);
const { source, target, dropSlots, logSource, follow, run, reset } = await followedTables(service, call);
afterEach(dropSlots);

// oxlint-disable-next-line typescript/no-explicit-any -- responses of any shape
type Json = any;
const sql = (text: string) => source.unsafe(text);
const get = async ({ id }: Json): Promise<Json> => (await call('GET', `/connections/${id}`)).body;
const pending = async ({ id }: Json): Promise<Json[]> =>
  (await rpcQuery(call, 'connections.schemaChanges', { connection_id: id })).result;
const review = (connection: Json, decision: string) =>
  rpc(call, 'connections.reviewSchemaChanges', { connection_id: connection.id, decision });
const rows = async (table: string, columns: string) =>
  (await target.unsafe(`select ${columns} from ${table} order by 1`)).map((row) => Object.values(row));
const columnsOf = async (table: string) =>
  (await target.unsafe(`select * from ${table} limit 0`)).columns
    .map(({ name }) => name)
    .filter((name) => name[0] !== '_');
const slotOf = async (connection: Json) => {
  const [stream] = (await get(connection)).streams.filter((one: Json) => one.selected);
  const name = `pipeline_${connection.id.replaceAll('-', '')}`;
  const [slot] =
    await source`select confirmed_flush_lsn::text as at from pg_replication_slots where slot_name = ${name}`;
  return { at: slot?.at, cursor: stream.cursor };
};
const logOf = async ({ stream }: Json) => {
  const where = eq(streamRuns.id, stream.id);
  const [row] = await service.deps.db.select({ log: streamRuns.log }).from(streamRuns).where(where);
  return row!.log;
};
const codes = ({ stream }: Json) => stream.warnings.map(({ code }: Json) => code);

let counter = 0;
/** A table of three rows, followed by CDC and loaded once. */
async function shop(more: { stream?: object; connection?: object; columns?: string } = {}) {
  const schema = `shop_${++counter}`;
  const table = `${schema}.orders`;
  await sql(`create schema ${schema}; create table ${table} (${more.columns ?? 'id int primary key, total int, note text'});
    insert into ${table} select i, i * 10, 'n' || i from generate_series(1, 3) i`);
  const connection = await follow('orders', {
    source_id: await logSource({ schemas: [schema] }),
    stream: more.stream,
    connection: { destination_schema: schema, ...more.connection },
  });
  expect(await run(connection)).toMatchObject({ status: 'succeeded', stream: { rows_loaded: 3 } });
  return { connection, table };
}

describe('an added column with its first value', () => {
  test.each(['propagate_columns', 'propagate_fully'])('is loaded with %s', async (schema_change_policy) => {
    const { connection, table } = await shop({ connection: { schema_change_policy } });
    await sql(`update ${table} set note = 'before' where id = 2; alter table ${table} add column extra int;
      update ${table} set extra = 8 where id = 3`);
    const second = await run(connection);
    expect(second).toMatchObject({ status: 'succeeded', stream: { attempt: 1, rows_updated: 2 } });
    expect(codes(second)).toEqual(['columns_added']);
    expect(second.stream.warnings[0]!.message).toMatch(
      /extra\. .* no value in them until they change .* cursor is reset/,
    );
    expect(await rows(table, 'id, note, extra')).toEqual([
      [1, 'n1', null],
      [2, 'before', null],
      [3, 'n3', 8],
    ]);
    expect(await pending(connection)).toEqual([]);
    expect((await logOf(second)).find(({ code }) => code === 'schema_changed')!.message).toMatch(
      / extra of .* is new in the source$/,
    );
    await sql(`insert into ${table} values (4, 4, 'n4', 9)`);
    const third = await run(connection);
    expect([third.status, codes(third)]).toEqual(['succeeded', []]);
    expect((await rows(table, 'id, extra')).at(-1)).toEqual([4, 9]);
  });

  test('is left out with ignore while runs continue; once accepted, it is loaded from then on', async () => {
    const { connection, table } = await shop({ connection: { schema_change_policy: 'ignore' } });
    await sql(`alter table ${table} add column extra int; update ${table} set extra = 8, note = 'x' where id = 3`);
    const second = await run(connection);
    expect(second).toMatchObject({ status: 'succeeded', stream: { attempt: 1, rows_updated: 1 } });
    expect(await columnsOf(table)).toEqual(['id', 'total', 'note']);
    expect(await pending(connection)).toMatchObject([
      { change: 'field_added', field_path: ['extra'], breaking: false },
    ]);
    expect((await review(connection, 'accept')).status).toBe(200);
    await sql(`update ${table} set extra = 1 where id = 1`);
    const third = await run(connection);
    expect(codes(third)).toEqual(['columns_added']);
    expect(await rows(table, 'id, note, extra')).toEqual([
      [1, 'n1', 1],
      [2, 'n2', null],
      [3, 'x', null],
    ]);
    await reset(connection);
    await run(connection);
    expect((await rows(table, 'extra'))[1]).toEqual([8]);
  });

  test('is loaded by a continuous connection once it is accepted, without a pause', async () => {
    const table = 'lasting.orders';
    await sql(`create schema lasting; create table ${table} (id int primary key); insert into ${table} values (1)`);
    const connection = await follow('orders', {
      source_id: await logSource({ schemas: ['lasting'] }),
      connection: {
        destination_schema: 'lasting',
        schema_change_policy: 'ignore',
        schedule: { type: 'continuous' },
      },
    });
    const becomes = (columns: string, found: unknown[]) =>
      until(async () => Bun.deepEquals(await rows(table, columns).catch(() => []), found), {
        what: `${columns} ${JSON.stringify(found)}`,
      });
    await becomes('id', [[1]]);
    await sql(`alter table ${table} add column extra int; insert into ${table} values (2, 8)`);
    await until(async () => (await pending(connection)).length === 1);
    await becomes('id', [[1], [2]]);
    expect((await get(connection)).active_run_id).not.toBeNull();
    expect((await review(connection, 'accept')).status).toBe(200);
    await until(async () => {
      await sql(`update ${table} set extra = 9 where id = 1`);
      return (await columnsOf(table)).includes('extra');
    });
    // The run before may have read the last one.
    await sql(`update ${table} set extra = 9 where id = 1`);
    await becomes('id, extra', [
      [1, 9],
      [2, null],
    ]);
    await call('POST', `/connections/${connection.id}`, { status: 'paused' });
    await until(async () => (await get(connection)).active_run_id === null);
  });

  test('stays in the log with disable_connection until the change is reviewed', async () => {
    const { connection, table } = await shop({ connection: { schema_change_policy: 'disable_connection' } });
    const before = await slotOf(connection);
    await sql(`alter table ${table} add column extra int; update ${table} set extra = 8 where id = 3`);
    for (const attempt of ['the one that finds it', 'one started manually']) {
      const refused = await run(connection);
      expect([attempt, refused.status]).toEqual([attempt, 'failed']);
      expect(refused.stream.error).toMatchObject({
        code: 'schema_change_unreviewed',
        type: 'schema_changed',
        origin: 'source',
        retryable: false,
        message: expect.stringMatching(/^Field extra of \S+ is new in the source\. Review/),
      });
      expect(await get(connection)).toMatchObject({
        status: 'auto_disabled',
        status_reason: 'schema_change_policy',
        schema_change_status: 'non_breaking',
      });
    }
    expect(await slotOf(connection)).toEqual(before);
    expect((await review(connection, 'accept')).result).toMatchObject({ status: 'active' });
    expect(await run(connection)).toMatchObject({ status: 'succeeded', stream: { rows_updated: 1 } });
    expect((await rows(table, 'id, extra'))[2]).toEqual([3, 8]);
  });
});

describe('a change to what a stream depends on', () => {
  /** A run that fails without moving the log position, on every attempt. */
  async function refused({ connection }: { connection: Json }, code: string) {
    const before = await slotOf(connection);
    const failed = await run(connection);
    expect([failed.status, failed.stream.error?.code]).toEqual(['failed', code]);
    await until(async () => (await get(connection)).schema_change_status === 'breaking');
    const again = await run(connection);
    expect([again.status, again.stream.error?.type]).toEqual(['failed', 'schema_changed']);
    expect(await slotOf(connection)).toEqual(before);
    return failed.stream.error!.message;
  }
  const accept = async (connection: Json) =>
    expect((await review(connection, 'accept')).result).toMatchObject({ status: 'active' });

  test('renamed column: changes under both names arrive under the new one', async () => {
    const created = await shop();
    const { connection, table } = created;
    await sql(`update ${table} set note = 'old name' where id = 1; alter table ${table} rename column note to remark;
      update ${table} set remark = 'new name' where id = 2`);
    expect(await refused(created, 'field_missing')).toMatch(/^Field note of \S+ no longer exists in the source/);
    await accept(connection);
    const second = await run(connection);
    expect([second.status, codes(second)]).toEqual(['succeeded', ['columns_added']]);
    expect(await rows(table, 'id, remark')).toEqual([
      [1, 'old name'],
      [2, 'new name'],
      [3, null],
    ]);
  });

  test('removed column: after the review, changes from before and after arrive without it', async () => {
    const created = await shop();
    const { connection, table } = created;
    await sql(`update ${table} set total = 11, note = 'x' where id = 1; alter table ${table} drop column note;
      update ${table} set total = 22 where id = 2; delete from ${table} where id = 3`);
    await refused(created, 'field_missing');
    await accept(connection);
    expect((await run(connection)).status).toBe('succeeded');
    expect(await rows(table, 'id, total')).toEqual([
      [1, 11],
      [2, 22],
    ]);
  });

  test('type change: a wider type is applied in place; a narrower one waits for a review', async () => {
    const created = await shop();
    const { connection, table } = created;
    await sql(`update ${table} set total = 11 where id = 1; alter table ${table} alter column total type bigint;
      update ${table} set total = 5000000000 where id = 2`);
    const wider = await run(connection);
    expect(wider).toMatchObject({ status: 'succeeded', stream: { rows_updated: 2 } });
    expect(await rows(table, 'total::text, pg_typeof(total)::text')).toEqual([
      ['11', 'bigint'],
      ['30', 'bigint'],
      ['5000000000', 'bigint'],
    ]);
    // Whether a USING clause has computed other values is not in the log.
    expect(codes(wider)).toEqual(['types_changed']);
    expect(wider.stream.warnings[0]!.message).toMatch(/orders .* total \(integer to bigint\)\. .* cursor is reset/);
    expect(codes(await run(connection))).toEqual([]);
    await sql(`update ${table} set note = '7'; update ${table} set note = 'no number' where id = 3; update ${table} set note = '8' where id = 3;
      alter table ${table} alter column note type int using note::int; update ${table} set note = 9 where id = 1`);
    expect(await refused(created, 'incompatible_change')).toContain('changed from text to integer');
    await accept(connection);
    expect((await run(connection)).status).toBe('succeeded');
    expect(await rows(table, 'id, note')).toEqual([
      [1, '9'],
      [2, '7'],
      [3, '8'],
    ]);
  });

  test('other primary key: refused before any row is merged by the wrong key', async () => {
    const created = await shop({ columns: 'id int primary key, total int not null, note text' });
    await sql(`update ${created.table} set note = 'x' where id = 1;
      alter table ${created.table} drop constraint orders_pkey; alter table ${created.table} add primary key (total)`);
    expect(await refused(created, 'incompatible_change')).toContain('changed from id to total');
    expect(await pending(created.connection)).toMatchObject([{ change: 'primary_key_changed', breaking: true }]);
    expect(await rows(created.table, 'note')).toEqual([['n1'], ['n2'], ['n3']]);
    await accept(created.connection);
    const failed = await run(created.connection);
    expect(failed.stream.error).toMatchObject({ code: 'replica_identity_insufficient', type: 'config_error' });
    await reset(created.connection);
    expect((await run(created.connection)).stream).toMatchObject({ status: 'succeeded', error: null });
    await sql(
      `update ${created.table} set note = 'by the new key' where total = 20; delete from ${created.table} where id = 3`,
    );
    expect((await run(created.connection)).stream).toMatchObject({ status: 'succeeded', error: null });
    expect(await rows(created.table, 'id, note')).toEqual([
      [1, 'x'],
      [2, 'by the new key'],
    ]);
  });

  test('table recreated under its name: reported, and read again after a reset', async () => {
    const { connection, table } = await shop();
    await sql(`update ${table} set note = 'lost with it' where id = 1; drop table ${table};
      create table ${table} (id int primary key, total int, note text, extra int); insert into ${table} values (7, 70, 'n7', 1)`);
    const failed = await run(connection);
    expect(failed.stream.error).toMatchObject({ code: 'publication_missing', type: 'config_error' });
    expect(failed.stream.error!.message).toContain("Reset the stream's cursor");
    await reset(connection);
    expect((await run(connection)).status).toBe('succeeded');
    expect(await rows(table, 'id, note, extra')).toEqual([[7, 'n7', 1]]);
  });

  test('replica identity removed and restored: no change is lost', async () => {
    const { connection, table } = await shop();
    await sql(`update ${table} set note = 'x' where id = 1; alter table ${table} replica identity nothing;
      insert into ${table} values (4, 40, 'n4')`);
    const before = await slotOf(connection);
    const failed = await run(connection);
    expect(failed.stream.error).toMatchObject({ code: 'replica_identity_missing', type: 'config_error' });
    expect(await slotOf(connection)).toEqual(before);
    await sql(`alter table ${table} replica identity full; delete from ${table} where id = 2`);
    expect((await run(connection)).status).toBe('succeeded');
    expect(await rows(table, 'id, note')).toEqual([
      [1, 'x'],
      [3, 'n3'],
      [4, 'n4'],
    ]);
  });

  test('several changes between two runs', async () => {
    const { connection, table } = await shop();
    await sql(`alter table ${table} add column a int; update ${table} set a = 1 where id = 1;
      alter table ${table} rename column a to b; update ${table} set b = 2 where id = 2;
      alter table ${table} alter column b type text; update ${table} set b = 'three' where id = 3;
      alter table ${table} add column gone int; update ${table} set gone = 4; alter table ${table} drop column gone;
      alter table ${table} alter column total type numeric(12, 2); update ${table} set total = 1.25 where id = 1;
      truncate ${table}; insert into ${table} (id, b) values (5, 'five')`);
    expect(await run(connection)).toMatchObject({ status: 'succeeded', stream: { attempt: 1 } });
    await sql(`insert into ${table} values (6, 6.5, 'n6', 'six')`);
    expect((await run(connection)).status).toBe('succeeded');
    expect(await rows(table, 'id, total::text, note, b')).toEqual([
      [5, null, null, 'five'],
      [6, '6.50', 'n6', 'six'],
    ]);
  });
});
