import { Database } from 'bun:sqlite';
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { startWorker } from '../../server/worker/start-worker.ts';
import { onDuckDb } from '../connectors/duckdb-places.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { mariaDbMissing, testMariaDb } from '../support/mariadb.ts';
import { getStreamRuns, runEnded } from '../support/pipeline.ts';
import { makerOf, postgresParameters, uniqueName } from '../support/resources.ts';
import { rpc } from '../support/rpc.ts';
import { until } from '../support/until.ts';

// The machine may be busy with other tests.
setDefaultTimeout(120_000);

const service = await testDeps({ config: { RETRY_BACKOFF_SECONDS: 0 } });
const { call } = testApi(service);
const make = makerOf(call);
const worker = await startWorker(service.deps);
const files = join(service.deps.config.DATA_DIR, 'files');
await mkdir(files, { recursive: true });
const [from, to] = [await createPlainDatabase(), await createPlainDatabase()];
const source = postgres(from.url, { max: 1, onnotice: () => {} });
const target = postgres(to.url, { max: 1, onnotice: () => {} });
afterAll(async () => {
  await worker.stop();
  await Promise.all([source.end(), target.end()]);
  await Promise.all([from.drop(), to.drop()]);
});

// oxlint-disable-next-line typescript/no-explicit-any -- responses of any shape
type Json = any;
interface World {
  connector: string;
  parameters: object;
  stream: object;
  /** Two rows, then a third with a value in a new column. */
  grow(): Promise<unknown>;
}

const TABLE = 'create table items (id integer primary key, name text, changed timestamp)';
const ROWS = "insert into items values (1, 'a', '2026-01-01 00:00:00'), (2, 'b', '2026-01-02 00:00:00')";
const GROWN = [
  'alter table items add column extra integer',
  "insert into items values (3, 'c', '2026-01-03 00:00:00', 8)",
  "update items set extra = 9, changed = '2026-01-04 00:00:00' where id = 1",
];
const byCursor = {
  name: 'items',
  sync_mode: 'incremental',
  cursor_field: ['changed'],
  destination_sync_mode: 'append_dedup',
};
const byFile = { name: 'items', sync_mode: 'incremental', destination_sync_mode: 'append_dedup' };

/** The modification time orders the files. */
async function put(path: string, text: string, day: number) {
  await Bun.write(join(files, path), text);
  await utimes(join(files, path), new Date(), new Date(Date.UTC(2026, 0, day)));
}

const WORLDS: Record<string, () => Promise<World>> = {
  async postgres() {
    await source.unsafe(`${TABLE}; ${ROWS}`);
    const grow = () => source.unsafe(GROWN.join('; '));
    return { connector: 'postgres', parameters: postgresParameters(from.url), stream: byCursor, grow };
  },
  async mysql() {
    const server = await testMariaDb();
    const database = await server.database();
    await server.sql(`${TABLE.replace('timestamp', 'datetime')}; ${ROWS}`, database);
    const { host, port, username, password } = server;
    const parameters = { host, port, username, password, database, ssl_mode: 'disable' };
    const grow = () => server.sql(GROWN.join('; '), database);
    return { connector: 'mysql', parameters, stream: byCursor, grow };
  },
  async sqlite() {
    const statements = (...all: string[]) => {
      const database = new Database(join(files, 'items.db'), { create: true });
      for (const one of all) database.run(one);
      database.close();
    };
    statements(TABLE, ROWS);
    return {
      connector: 'sqlite',
      parameters: { path: 'items.db' },
      stream: byCursor,
      grow: async () => statements(...GROWN),
    };
  },
  async duckdb() {
    const path = join(files, 'items.duckdb');
    await onDuckDb(path, TABLE, ROWS);
    return {
      connector: 'duckdb',
      parameters: { path: 'items.duckdb' },
      stream: byCursor,
      grow: () => onDuckDb(path, ...GROWN),
    };
  },
  async csv() {
    await put('csv/items-1.csv', 'id,name\n1,a\n2,b\n', 1);
    const grow = async () => {
      await put('csv/items-2.csv', 'id,name\n4,d\n', 2);
      await put('csv/items-3.csv', 'extra,id,name\n9,1,a\n8,3,c\n', 3);
    };
    const parameters = { path: 'csv/items-*.csv', stream_name: 'items', primary_key: ['id'] };
    return { connector: 'file', parameters, stream: byFile, grow };
  },
  async jsonl() {
    const lines = (...all: object[]) => all.map((one) => `${JSON.stringify(one)}\n`).join('');
    await put('jsonl/items-1.jsonl', lines({ id: 1, name: 'a' }, { id: 2, name: 'b' }), 1);
    const grow = () =>
      put('jsonl/items-2.jsonl', lines({ id: 1, name: 'a', extra: 9 }, { id: 3, name: 'c', extra: 8 }), 2);
    const parameters = { path: 'jsonl/items-*.jsonl', stream_name: 'items', primary_key: ['id'] };
    return { connector: 'file', parameters, stream: byFile, grow };
  },
};

async function run(connection: Json) {
  const started = await call('POST', `/connections/${connection.id}/run`);
  expect(started.status).toBe(200);
  const ended = await runEnded(service, started.body, 60_000);
  const [stream] = await getStreamRuns(service, started.body);
  return {
    status: ended.status,
    error: stream!.error,
    codes: stream!.warnings.map(({ code }) => code),
    stream: stream!,
  };
}

const POLICIES = ['propagate_columns', 'ignore', 'disable_connection'] as const;
const kinds = Object.keys(WORLDS).filter((kind) => kind !== 'mysql' || !mariaDbMissing);
test.each(kinds)('%s: values of a column added between two runs are not skipped', async (kind) => {
  const { connector, parameters, stream, grow } = await WORLDS[kind]!();
  const { id: source_id } = await make.connector('source', connector, parameters);
  const { id: destination_id } = await make.connector('destination', 'postgres', postgresParameters(to.url));
  const ready = async () =>
    (await call('GET', `/account_connectors/source/${source_id}`)).body.catalog_status === 'ready';
  await until(ready, { timeout_ms: 60_000 });
  const created: Json[] = [];
  for (const schema_change_policy of POLICIES) {
    const more = { destination_schema: `${kind}_${schema_change_policy}`, schema_change_policy };
    const connection = await make.connection({
      name: uniqueName(kind),
      source_id,
      destination_id,
      streams: [stream],
      ...more,
    });
    expect(await run(connection)).toMatchObject({ status: 'succeeded', error: null, stream: { rows_loaded: 2 } });
    created.push(connection);
  }
  const [taking, ignoring, waiting] = created;
  const rows = async (policy: (typeof POLICIES)[number], columns: string) =>
    (await target.unsafe(`select ${columns} from ${kind}_${policy}.items where id <= 3 order by id`)).map((row) =>
      Object.values(row),
    );
  await grow();

  const refused = await run(waiting);
  expect([refused.status, refused.error?.code]).toEqual(['failed', 'schema_change_unreviewed']);
  expect(refused.error?.message).toMatch(/^Field extra of \S+ is new in the source\. Review/);
  expect(await rows('disable_connection', 'id::int')).toEqual([[1], [2]]);

  const second = await run(taking);
  expect([second.status, second.error, second.codes]).toEqual(['succeeded', null, ['columns_added']]);
  const filled = [
    [1, 'a', 9],
    [2, 'b', null],
    [3, 'c', 8],
  ];
  const numbers = 'id::int, name, extra::int';
  expect(await rows('propagate_columns', numbers)).toEqual(filled);

  const left = await run(ignoring);
  expect([left.status, left.error, left.codes]).toEqual(['succeeded', null, []]);
  expect(await rows('ignore', 'id::int, name')).toEqual(filled.map((row) => row.slice(0, 2)));
  expect(
    (await target.unsafe(`select * from ${kind}_ignore.items limit 0`)).columns.map(({ name }) => name),
  ).not.toContain('extra');

  const announced = async ({ id }: Json) => {
    const { body } = await call('GET', `/automation/events?connection_id=${id}&limit=200`);
    return body.filter((one: Json) => one.event === 'schema_changed').map((one: Json) => one.summary);
  };
  expect(await announced(taking)).toEqual([
    expect.stringContaining('1 field added. Rows loaded earlier have no value in'),
  ]);
  expect(await announced(ignoring)).toEqual([
    expect.stringContaining('1 field added. Fields that wait for a review are not loaded'),
  ]);
  expect(await announced(waiting)).toEqual([expect.stringMatching(/1 field added$/)]);

  const review = { connection_id: waiting.id, decision: 'accept' };
  expect((await rpc(call, 'connections.reviewSchemaChanges', review)).result).toMatchObject({ status: 'active' });
  expect((await run(waiting)).status).toBe('succeeded');
  expect(await rows('disable_connection', numbers)).toEqual(filled);
});
