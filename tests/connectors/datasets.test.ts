import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import type {
  AnySource,
  Cell,
  ConnectorContext,
  Dataset,
  ReadRequest,
  StreamState,
} from '../../server/connectors/contract/connector.ts';
import { duckDbSource } from '../../server/connectors/duckdb/source.ts';
import { ConnectorError } from '../../server/connectors/contract/errors.ts';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { sqliteSource } from '../../server/connectors/sqlite/source.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { onDuckDb } from './duckdb-places.ts';
import { errorOf, mysqlDatabase, sourceConfig as mysqlContext } from './mysql-support.ts';
import { contextOf, sourceConfig, twoDatabases } from './postgres-support.ts';
import { readBatches, requestOf } from './reading.ts';

// The machine may be busy with other tests. Filters and masks of queries are in pushdown.test.ts.
setDefaultTimeout(60_000);

const pg = twoDatabases();
const maria = mysqlDatabase();
const filesRoot = temporaryFolder();
interface Opened {
  ctx: ConnectorContext<unknown>;
  abort: AbortController;
}
const file = (source: AnySource, path: string): Opened => {
  const { ctx, abort } = contextOf(source.config.parse({ path }));
  return { ctx: { ...ctx, filesRoot }, abort };
};

interface Place {
  name: string;
  skip?: boolean;
  source: AnySource;
  open(): Opened;
  /** Runs statements that change the database. */
  run(statements: string): Promise<unknown>;
  /** The types of a day and an instant. */
  types: [day: string, moment: string];
}
const PLACES: Place[] = [
  {
    name: 'postgres',
    source: postgresSource,
    open: () => sourceConfig(pg.source),
    run: async (statements) => void (await pg.source.sql.unsafe(statements)),
    types: ['date', 'timestamp'],
  },
  {
    name: 'mysql',
    skip: mariaDbMissing !== null,
    source: mysqlSource,
    open: () => mysqlContext(maria),
    run: (statements) => maria.sql(statements),
    types: ['date', 'datetime(6)'],
  },
  {
    name: 'sqlite',
    source: sqliteSource,
    open: () => file(sqliteSource, 'sales.db'),
    run: async (statements) => {
      using database = new Database(join(filesRoot, 'sales.db'), { create: true });
      database.run(statements);
    },
    types: ['date', 'datetime'],
  },
  {
    name: 'duckdb',
    source: duckDbSource,
    open: () => file(duckDbSource, 'sales.duckdb'),
    run: (statements) => onDuckDb(join(filesRoot, 'sales.duckdb'), ...statements.split(';')),
    types: ['date', 'timestamp'],
  },
];
const two = (value: number) => String(value).padStart(2, '0');
/** Three rows share each moment; the last has none. */
const sale = (id: number) =>
  `(${id}, 'Name ${id}', ${id}.25, '2024-01-${two((id % 28) + 1)}', ${id === 30 ? 'null' : `'2024-01-01 00:00:${two(Math.floor(id / 3))}'`})`;
const SALES = Array.from({ length: 30 }, (_, at) => sale(at + 1)).join(', ');

describe.each(PLACES.filter(({ skip }) => !skip))(
  '$name',
  ({ name: kind, source, open, run, types: [day, moment] }) => {
    const ctx = () => open().ctx;
    const contextWith = (datasets: Dataset[]) => ({ ...ctx(), datasets });
    async function dataset(sql: string, name = 'wanted') {
      const streams = await source.discover(contextWith([{ name, sql }]));
      const found = streams.find((one) => one.namespace === null && one.dataset_sql === sql);
      if (!found) throw new Error('no stream');
      return found;
    }
    const rowsOf = async (sql: string, more: Parameters<typeof requestOf>[1] = {}) =>
      (await readBatches(source, ctx(), requestOf(await dataset(sql), more))).flatMap(({ rows }) => rows);
    const ids = (rows: Cell[][]) => rows.map(([id]) => Number(id)).toSorted((a, b) => a - b);

    beforeAll(() =>
      run(`create table sales (id integer primary key, name varchar(40), amount decimal(12,2), day ${day}, moment ${moment});
      insert into sales values ${SALES}`),
    );

    test('a query is a stream without a namespace, with the types that it gives', async () => {
      const sql =
        "select s.*, s.id * 2 as twice, 'a;b' as mark, null as absent from sales s where name <> ')' -- all\n ; ";
      const stream = await dataset(sql);
      expect(stream).toMatchObject({ name: 'wanted', is_resumable: true, supports_date_window: true, suggested: true });
      expect(stream.fields.map(({ path, type }) => [path[0], type])).toEqual([
        ['id', 'integer'],
        ['name', 'string'],
        ['amount', 'number'],
        ['day', 'date'],
        ['moment', 'timestamp'],
        ['twice', 'integer'],
        ['mark', 'string'],
        ['absent', kind === 'duckdb' ? 'integer' : 'string'],
      ]);
      expect(await source.describeDataset!(ctx(), { name: 'wanted', sql })).toEqual(stream);
      expect(stream.fields.filter((field) => field.is_cursor_candidate).map(({ path }) => path[0])).toEqual(
        expect.arrayContaining(['id', 'amount', 'day', 'moment', 'twice']),
      );
    });

    test('its cells are those that the table gives', async () => {
      const streams = await source.discover(ctx());
      const table = streams.find(({ name }) => name === 'sales')!;
      const rows = await readBatches(source, ctx(), requestOf(table));
      expect(rows[0]?.rows).toHaveLength(30);
      expect(await rowsOf('select * from sales')).toEqual(rows.flatMap((batch) => batch.rows));
    });

    test('a window of days', async () => {
      const window = { start: '2024-01-03', end: '2024-01-05' };
      expect(ids(await rowsOf('select id, day from sales', { cursor_field: ['day'], window }))).toEqual([2, 3, 30]);
    });

    test('is read on from a cursor: rows that share it are neither lost nor doubled, and those without it come once', async () => {
      const stream = await dataset('select id, moment from sales where id <> 5');
      const incremental = async (state: StreamState | null) => {
        const how: Partial<ReadRequest> = {
          sync_mode: 'incremental',
          cursor_field: ['moment'],
          primary_key: [['id']],
          state,
        };
        const batches = await readBatches(source, ctx(), requestOf(stream, how));
        return { rows: batches.flatMap(({ rows }) => rows), state: batches.at(-1)?.state ?? state };
      };
      const first = await incremental(null);
      expect(ids(first.rows)).toEqual(Array.from({ length: 30 }, (_, at) => at + 1).filter((id) => id !== 5));
      await run(`insert into sales values (31, 'same', 1, '2024-02-01', '2024-01-01 00:00:09'), (32, 'later', 1, '2024-02-01', '2024-01-02 00:00:00'),
      (33, 'never', 1, '2024-02-01', null)`);
      const second = await incremental(first.state);
      expect(ids(second.rows)).toEqual([31, 32]);
      expect((await incremental(second.state)).rows).toEqual([]);
      await run('delete from sales where id > 30');
    });

    test('a column that is gone since is a changed schema', async () => {
      await run('create table loose (id integer, note integer); insert into loose values (1, 2)');
      const stream = await dataset('select * from loose');
      await run('alter table loose drop column note');
      expect(await errorOf(readBatches(source, ctx(), requestOf(stream)))).toMatchObject({
        code: 'column_missing',
        type: 'schema_changed',
      });
      await run('drop table loose');
    });

    test.each([
      ['a word wrong', 'selct 1', ''],
      ['nothing', ' -- only words', ''],
      ['two statements', 'select 1 as a; drop table sales', ''],
      ['two statements out of the brackets', 'select 1 as a) q; drop table sales; select * from (select 1 as a', ''],
      ['an end out of the brackets', 'select * from sales) t where id = 1 --', ''],
      ['a comment that is left open', 'select 1 as a /*', ''],
      ['a change', 'delete from sales', ''],
      ['a change that gives rows', 'delete from sales returning id', ''],
      ['no such table', 'select * from nothing_here', 'nothing_here'],
      ['two columns of one name', 'select id, name as id from sales', ''],
      ['a value left open', `select * from sales where id = ${kind === 'postgres' ? '$1' : '?'}`, ''],
    ])("%s is reported with the dataset's name by check, discovery and read", async (_, sql, words) => {
      const wrong = [{ name: 'wrong', sql }];
      const stream = { ...(await dataset('select id from sales')), name: 'wrong', dataset_sql: sql };
      const works = [
        () => source.discover(contextWith(wrong)),
        () => source.check(contextWith(wrong)),
        () => readBatches(source, ctx(), requestOf(stream)),
      ];
      for (const work of works) {
        const error = await errorOf(Promise.resolve(work()));
        expect(error).toMatchObject({ code: 'invalid_dataset', type: 'config_error' });
        expect(error!.message).toContain('Dataset "wrong"');
        expect(error!.message).toContain(words);
        expect(error!.message).not.toContain(filesRoot);
      }
      expect(ids(await rowsOf('select id from sales'))).toHaveLength(30);
    });

    test('the check counts them', async () => {
      const datasets = ['a', 'b'].map((name) => ({ name, sql: 'select id from sales' }));
      const { checks } = await source.check(contextWith(datasets));
      expect(checks).toContainEqual({ title: 'Datasets', status: 'passed', message: '2 readable queries' });
    });

    const ENDLESS = {
      postgres: 'select count(*) as n from generate_series(1, 1e15)',
      mysql: 'select count(*) as n from seq_1_to_1000000 a, seq_1_to_1000000 b where a.seq % 7 = b.seq % 5',
      sqlite: 'with recursive s(n) as (select 1 union all select n + 1 from s) select count(*) as n from s',
      duckdb:
        'select count(*) as n from range(1000000000000) a, range(1000000000000) b where a.range % 7 = b.range % 5',
    }[kind]!;

    test('a query without an end lets go at once when it is stopped', async () => {
      const stream = { ...(await dataset('select count(*) as n from sales')), dataset_sql: ENDLESS };
      const { ctx: stopped, abort } = open();
      const reason = new Error('stopped');
      const work = readBatches(source, stopped, requestOf(stream));
      const stop = setTimeout(() => abort.abort(reason), 500);
      const before = performance.now();
      expect(await errorOf(work)).toBe(reason as never);
      expect(performance.now() - before).toBeLessThan(5_000);
      clearTimeout(stop);
    });
  },
);

/** By the error's class: what a query cannot reach. */
const refused = async (source: AnySource, path: string, sql: string) => {
  const stream = { name: 'wanted', namespace: null, dataset_sql: sql } as never;
  const field = { path: ['a'], type: 'string', source_type: null } as never;
  const request = {
    ...requestOf({ ...(stream as object), fields: [field] } as never),
    columns: [{ field, masking: 'none' as const }],
  };
  const work = [
    source.discover({ ...file(source, path).ctx, datasets: [{ name: 'wanted', sql }] }),
    readBatches(source, file(source, path).ctx, request),
  ];
  return Promise.all(work.map(async (one) => (await errorOf(one)) instanceof ConnectorError));
};

test.each([
  "attach '/tmp/reached.db' as o",
  'pragma query_only = off',
  'pragma writable_schema = on',
  "vacuum into '/tmp/reached.db'",
  'create temp table t (a)',
  "select load_extension('/tmp/reached.so') as a",
  "select readfile('/etc/passwd') as a",
  "select writefile('/tmp/reached', 'x') as a",
  'select zeroblob(900000000) as a',
])('sqlite: %s has no access', async (sql) => {
  expect(await refused(sqliteSource, 'sales.db', sql)).toEqual([true, true]);
  expect(await Bun.file('/tmp/reached.db').exists()).toBe(false);
});

test.each([
  "select * from read_csv('/etc/passwd')",
  "select content as a from read_text('/etc/passwd')",
  "select content as a from read_blob('/etc/passwd')",
  "select file as a from glob('/etc/*')",
  "from '/etc/passwd'",
  "select * from sniff_csv('/etc/passwd')",
  "copy sales to '/tmp/reached.csv'",
  "copy (select 1 as a) to '/tmp/reached.csv'",
  "attach '/tmp/reached.db' as o",
  "attach ':memory:' as o",
  'install httpfs',
  "load '/tmp/reached.so'",
  'set enable_external_access = true',
  "export database '/tmp/reached'",
  'create temp table t as select 1 as a',
  "select * from read_parquet('https://127.0.0.1/x.parquet')",
  'pragma database_list',
  'checkpoint',
])('duckdb: %s has no access', async (sql) => {
  // Discovery runs no query, so it may succeed.
  const [, isReadRefused] = await refused(duckDbSource, 'sales.duckdb', sql);
  expect(isReadRefused).toBe(true);
  for (const name of ['reached.csv', 'reached.db', 'reached/schema.sql']) {
    expect(await Bun.file(join('/tmp', name)).exists()).toBe(false);
  }
});
