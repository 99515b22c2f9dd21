import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import postgres from 'postgres';
import { startWorker } from '../../server/engine/handlers.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { followedTables } from '../support/followed-tables.ts';
import { rpc, rpcQuery } from '../support/rpc.ts';

// The machine may be busy with other tests.
setDefaultTimeout(120_000);

const service = await testDeps({ config: { RETRY_BACKOFF_SECONDS: 0 } });
const { call } = testApi(service);
const worker = await startWorker(service.deps);
const [from, to] = [await createPlainDatabase(), await createPlainDatabase()];
const source = postgres(from.url, { max: 2, onnotice: () => {} });
const target = postgres(to.url, { max: 2, onnotice: () => {} });
const { logSource, follow, run, reset } = followedTables(service, { call, from: from.url, to: to.url });

afterAll(async () => {
  await worker.stop();
  const slots = await source`select slot_name from pg_replication_slots where database = current_database()`;
  for (const { slot_name } of slots) await source`select pg_drop_replication_slot(${slot_name})`;
  await Promise.all([source.end(), target.end()]);
  await Promise.all([from.drop(), to.drop()]);
});

// oxlint-disable-next-line typescript/no-explicit-any -- answers of every shape
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
  const name = `pipeline_${stream.id.replaceAll('-', '')}`;
  const [slot] =
    await source`select confirmed_flush_lsn::text as at from pg_replication_slots where slot_name = ${name}`;
  return { at: slot?.at, cursor: stream.cursor };
};
const codes = ({ stream }: Json) => stream.warnings.map(({ code }: Json) => code);

let counter = 0;
/** A table of three rows, followed and loaded once. */
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

describe('a column that is added, with the first value in it', () => {
  test.each(['propagate_columns', 'propagate_fully'])('arrives with %s', async (schema_change_policy) => {
    const { connection, table } = await shop({ connection: { schema_change_policy } });
    await sql(`update ${table} set note = 'before' where id = 2; alter table ${table} add column extra int;
      update ${table} set extra = 8 where id = 3`);
    const second = await run(connection);
    expect(second).toMatchObject({ status: 'succeeded', stream: { attempt: 1, rows_updated: 2 } });
    expect(codes(second)).toEqual(['columns_added']);
    expect(second.stream.warnings[0]!.message).toMatch(/extra .* no value there until they change .* cursor is reset/);
    expect(await rows(table, 'id, note, extra')).toEqual([
      [1, 'n1', null],
      [2, 'before', null],
      [3, 'n3', 8],
    ]);
    expect(await pending(connection)).toEqual([]);
    await sql(`insert into ${table} values (4, 4, 'n4', 9)`);
    const third = await run(connection);
    expect([third.status, codes(third)]).toEqual(['succeeded', []]);
    expect((await rows(table, 'id, extra')).at(-1)).toEqual([4, 9]);
  });

  test('is left out with ignore, and nothing stops; accepted later, it comes from then on', async () => {
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

  test('waits in the log with disable_connection until somebody decides', async () => {
    const { connection, table } = await shop({ connection: { schema_change_policy: 'disable_connection' } });
    const before = await slotOf(connection);
    await sql(`alter table ${table} add column extra int; update ${table} set extra = 8 where id = 3`);
    for (const attempt of ['the one that meets it', 'one started by hand']) {
      const refused = await run(connection);
      expect([attempt, refused.status]).toEqual([attempt, 'failed']);
      expect(refused.stream.error).toMatchObject({
        code: 'schema_change_unreviewed',
        type: 'schema_changed',
        origin: 'source',
        retryable: false,
        message: expect.stringContaining('the field extra is new'),
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
