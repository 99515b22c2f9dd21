import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import type { ReadRequest, StreamSchema } from '../../server/connectors/contract/connector.ts';
import { describeApart } from '../../server/connectors/sqlite/query-subprocess.ts';
import { comesRowByRow } from '../../server/connectors/sqlite/read.ts';
import { sqliteSource } from '../../server/connectors/sqlite/source.ts';
import { childrenOf, isAlive } from '../support/processes.ts';
import { until } from '../support/until.ts';
import { errorOf } from './mysql-support.ts';
import { readBatches, requestOf } from './reading.ts';
import { type SqlitePlace, sqlitePlace } from './sqlite-support.ts';

// The machine may be busy with other tests. What all databases do with queries is in datasets.test.ts.
setDefaultTimeout(60_000);

let place: SqlitePlace;
beforeEach(async () => {
  place = await sqlitePlace();
});
afterEach(() => place.close());

const ENDLESS = 'with recursive s(n) as (select 1 union all select n + 1 from s) select count(*) as n from s';
const field = { path: ['n'], type: 'integer', source_type: null, dialect: null, nullable: true } as const;
const query = (sql: string): StreamSchema =>
  ({ namespace: null, name: 'asked', fields: [field], default_cursor_field: null, dataset_sql: sql }) as never;
const read = (sql: string, signal?: AbortSignal) =>
  readBatches(sqliteSource, place.context(signal), requestOf(query(sql)));
const queriesOf = (parent: number) => childrenOf(parent, 'query-process.ts');

test('a query that takes too long to be described is ended, and named', async () => {
  const work = describeApart(place.context(), { name: 'slow', sql: ENDLESS }, 500);
  expect(await errorOf(work)).toMatchObject({
    type: 'timeout',
    code: 'query_timeout',
    message: expect.stringContaining('"slow"'),
  });
  expect(queriesOf(process.pid)).toEqual([]);
});

test('a query that takes too much memory is ended, and costs this process none', async () => {
  const before = process.memoryUsage.rss();
  const huge = 'select length(zeroblob(900000000) || zeroblob(900000000)) as n';
  expect(await errorOf(read(huge))).toMatchObject({ code: 'query_too_large', type: 'config_error' });
  expect(process.memoryUsage.rss() - before).toBeLessThan(200_000_000);
});

test('a reader who leaves early leaves no process behind; a large answer waits for its reader', async () => {
  const many = 'with recursive s(n) as (select 1 union all select n + 1 from s where n < 3000000) select n from s';
  const before = process.memoryUsage.rss();
  let rows = 0;
  for await (const batch of sqliteSource.read(place.context(), requestOf(query(many)))) {
    rows += batch.rows.length;
    if (rows === 5_000) await Bun.sleep(300);
    if (rows >= 20_000) break;
  }
  expect(rows).toBe(20_000);
  expect(queriesOf(process.pid)).toEqual([]);
  expect(process.memoryUsage.rss() - before).toBeLessThan(100_000_000);
});

test('a query ends with the process that asked, however that went', async () => {
  const context = JSON.stringify({ filesRoot: place.filesRoot, config: { path: 'data.db' } });
  const program = `
    import { sqliteSource } from ${JSON.stringify(new URL('../../server/connectors/sqlite/source.ts', import.meta.url).pathname)};
    const request = ${JSON.stringify(requestOf(query(ENDLESS)))};
    for await (const batch of sqliteSource.read({ ...${context}, signal: new AbortController().signal }, request)) console.log(batch);`;
  const asked = Bun.spawn([process.execPath, '-e', program], { stdout: 'ignore', stderr: 'inherit' });
  await until(() => queriesOf(asked.pid).length === 1, { timeout_ms: 30_000 });
  const [child] = queriesOf(asked.pid);
  asked.kill('SIGKILL');
  await asked.exited;
  await until(() => !isAlive(child!), { timeout_ms: 10_000 });
});

test('words that only look like an end, and a query that gives dates of its own, are read', async () => {
  place.write.run(
    "create table t (id integer, at datetime, note text); insert into t values (1, '2026-01-02 03:04:05', 'a'), (2, null, ';')",
  );
  const sql = `select id as "a;b", date(at) as day, max(at) over () as latest, ')' || note as mark, 1.5 * id as more from t /* ); */ ;;`;
  const streams = await sqliteSource.discover({ ...place.context(), datasets: [{ name: 'asked', sql }] });
  const stream = streams.find(({ name }) => name === 'asked')!;
  expect(stream.fields.map(({ path, type }) => [path[0], type])).toEqual([
    ['a;b', 'integer'],
    ['day', 'date'],
    ['latest', 'timestamp'],
    ['mark', 'string'],
    ['more', 'number'],
  ]);
  const batches = await readBatches(sqliteSource, place.context(), requestOf(stream));
  expect(batches.flatMap(({ rows }) => rows)).toEqual([
    ['1', '2026-01-02', '2026-01-02 03:04:05', ')a', '1.5'],
    ['2', null, '2026-01-02 03:04:05', ');', '3'],
  ]);
});

test('tables are read by the worker where rows come one by one, and everything else by a process', async () => {
  place.write.run(`create table t (id integer primary key, at integer, seen integer); create index by_seen on t (seen);
    insert into t values (1, 5, 7), (2, 4, null); create view v as select * from t`);
  const by = async (name: string, cursor?: string, state: string | null = null) => {
    const cursor_field = cursor === undefined ? null : [cursor];
    const sync_mode = cursor_field ? 'incremental' : 'full_refresh';
    const request: ReadRequest = { ...requestOf(await place.stream(name)), sync_mode, cursor_field };
    return comesRowByRow(place.context(), { ...request, state: state === null ? null : { cursor: state } });
  };
  expect([await by('t'), await by('t', 'seen'), await by('t', 'seen', '6'), await by('t', 'id', '1')]).toEqual(
    Array(4).fill(true),
  );
  expect([await by('v'), await by('t', 'at'), await by('v', 'id'), await by('t', 'at', '4')]).toEqual(
    Array(4).fill(false),
  );
});
