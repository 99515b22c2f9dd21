import { beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { Database } from 'bun:sqlite';
import type {
  AnySource,
  Cell,
  ConnectorContext,
  Filter,
  Masking,
  StreamSchema,
} from '../../server/connectors/contract/connector.ts';
import { duckDbSource } from '../../server/connectors/duckdb/source.ts';
import { mysqlSource } from '../../server/connectors/mysql/source.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { sqliteSource } from '../../server/connectors/sqlite/source.ts';
import { createMapper } from '../../server/transfer/mapping.ts';
import { planTransfer, readRequest } from '../../server/pipeline/transfer-plan.ts';
import { openSecrets } from '../../server/platform/secrets.ts';
import { mariaDbMissing } from '../support/mariadb.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { onDuckDb } from './duckdb-places.ts';
import { mysqlDatabase, sourceConfig as mysqlContext } from './mysql-support.ts';
import { contextOf, sourceConfig, twoDatabases } from './postgres-support.ts';

/** Every source has the same rows; `moment` has a time zone where the source knows such a type. */
const ROWS: [id: number, name: string | null, amount: string | null, day: string | null, moment: string | null][] = [
  [1, 'Ann', '1.50', '2026-01-31', '2026-01-31 10:00:00'],
  [2, 'ann', '-2', '2026-02-01', '2026-01-31 10:00:00.5'],
  [3, 'Äpfel ☃', '10', '2025-12-31', '2025-12-31 23:59:59.999999'],
  [4, '', '0', '2026-01-31', '2026-01-31 00:00:00'],
  [5, null, null, null, null],
  [6, 'a%b_c\\', '1000000.25', '1969-12-31', '1969-12-31 12:00:00'],
  [7, 'it\'s "so"', '9.9', '2026-10-01', '2026-10-01 00:00:00'],
  [8, 'Zoe ', '1.5', '2026-01-30', '2026-01-30 10:00:00'],
  [9, '10', '100', '2026-09-30', '2026-09-30 10:00:00'],
];
const FILTERS: [field: string, operator: Filter['operator'], value: unknown, ids: number[]][] = [
  ['name', 'eq', 'Ann', [1]],
  ['name', 'eq', 'Zoe', []],
  ['name', 'ne', 'Ann', [2, 3, 4, 6, 7, 8, 9]],
  ['name', 'gt', 'Zoe', [2, 3, 6, 7, 8]],
  ['name', 'lte', 'Ann', [1, 4, 9]],
  ['name', 'between', ['A', 'Z'], [1]],
  ['name', 'in', ['ann', 'Äpfel ☃', 'nobody'], [2, 3]],
  ['name', 'not_in', ['ann', ''], [1, 3, 6, 7, 8, 9]],
  ['name', 'in', [], []],
  ['name', 'contains', '%', [6]],
  ['name', 'contains', 'n', [1, 2]],
  ['name', 'contains', "'", [7]],
  ['name', 'contains', '\\', [6]],
  ['name', 'starts_with', 'a', [2, 6]],
  ['name', 'starts_with', '_', []],
  ['name', 'starts_with', '', [1, 2, 3, 4, 6, 7, 8, 9]],
  ['name', 'is_null', null, [5]],
  ['name', 'is_not_null', null, [1, 2, 3, 4, 6, 7, 8, 9]],
  ['amount', 'eq', 1.5, [1, 8]],
  ['amount', 'eq', '1.50', [1, 8]],
  ['amount', 'gt', 9, [3, 6, 7, 9]],
  ['amount', 'lt', '0', [2]],
  ['amount', 'between', [0, 10], [1, 3, 4, 7, 8]],
  ['amount', 'in', [10, 0], [3, 4]],
  ['amount', 'not_in', [10, 0], [1, 2, 6, 7, 8, 9]],
  ['id', 'gte', 9, [9]],
  ['id', 'in', ['2', 10], [2]],
  ['day', 'eq', '2026-01-31', [1, 4]],
  ['day', 'lt', '2026-01-01', [3, 6]],
  ['day', 'between', ['2026-01-30', '2026-01-31'], [1, 4, 8]],
  ['moment', 'gte', '2026-01-31', [1, 2, 4, 7, 9]],
  ['moment', 'gt', '2026-01-31T10:00:00Z', [2, 7, 9]],
  ['moment', 'eq', '2026-01-31 10:00:00', [1]],
  ['moment', 'lte', '2025-12-31T23:59:59.999999Z', [3, 6]],
  ['moment', 'in', ['2026-10-01T00:00:00Z'], [7]],
];
const MASKS: Masking[] = ['hash_sha256', 'hash_sha256_salted', 'redact', 'encrypt'];
const KEYS = openSecrets('a key of thirty-two characters....').maskKeys('account');

const pg = twoDatabases();
const maria = mysqlDatabase();
const filesRoot = temporaryFolder();
const quoted = (value: string | number | null, escape = '') =>
  value === null ? 'null' : typeof value === 'number' ? String(value) : `${escape}'${value.replaceAll("'", "''")}'`;
const values = (slashes = false) =>
  ROWS.map(
    (row) =>
      `(${row.map((cell) => (slashes && typeof cell === 'string' ? quoted(cell.replaceAll('\\', '\\\\')) : quoted(cell))).join(', ')})`,
  ).join(', ');
const file = (source: AnySource, path: string) =>
  ({ ...contextOf(source.config.parse({ path })).ctx, filesRoot }) as ConnectorContext<unknown>;

interface Place {
  name: string;
  skip?: boolean;
  source: AnySource;
  ctx(): ConnectorContext<unknown>;
  fill(): Promise<unknown>;
}
const PLACES: Place[] = [
  {
    name: 'postgres',
    source: postgresSource,
    ctx: () => sourceConfig(pg.source).ctx,
    fill: () =>
      pg.source.sql.unsafe(`create collation german (provider = icu, locale = 'de');
        create table things (id int primary key, name text collate german, amount numeric(12,2), day date, moment timestamptz);
        set timezone = 'UTC'; insert into things values ${values()}`),
  },
  {
    name: 'mysql',
    skip: mariaDbMissing !== null,
    source: mysqlSource,
    ctx: () => mysqlContext(maria).ctx,
    fill: () =>
      maria.sql(`create table things (id int primary key, name varchar(100), amount decimal(12,2), day date, moment datetime(6)) default character set utf8mb4;
        insert into things values ${values(true)}`),
  },
  {
    name: 'sqlite',
    source: sqliteSource,
    ctx: () => file(sqliteSource, 'things.db'),
    fill: async () => {
      const database = new Database(join(filesRoot, 'things.db'), { create: true });
      database.run(
        'create table things (id integer primary key, name text, amount decimal(12,2), day date, moment datetime)',
      );
      database.run(`insert into things values ${values()}`);
      database.close();
    },
  },
  {
    name: 'duckdb',
    source: duckDbSource,
    ctx: () => file(duckDbSource, 'things.duckdb'),
    fill: () =>
      onDuckDb(
        join(filesRoot, 'things.duckdb'),
        'create table things (id integer primary key, name varchar, amount decimal(12,2), day date, moment timestamptz)',
        `insert into things values ${values()}`,
      ),
  },
];

const QUERY = { name: 'asked', sql: 'select t.* from things t -- all of them' };
/** Queries are filled by the tests of their tables. */
const KINDS = PLACES.filter(({ skip }) => !skip).flatMap((place) => [
  { ...place, kind: 'table', stream: 'things' },
  { ...place, kind: 'query', stream: QUERY.name, fill: async () => {} },
]);

describe.each(KINDS)('$name, a $kind', ({ source, ctx, fill, stream: wanted }) => {
  let schema: StreamSchema;
  beforeAll(async () => {
    await fill();
    schema = (await source.discover({ ...ctx(), datasets: [QUERY] })).find(({ name }) => name === wanted)!;
  });
  const { masking: masks, filters: filtersItself } = source.pushdown;
  /** With all pushdown that the source supports, or with none, so that the engine does everything. */
  const WAYS: AnySource[] = [
    ...(masks.length > 0 || filtersItself ? [source] : []),
    { ...source, pushdown: { masking: [], filters: false } },
  ];

  async function read(way: AnySource, settings: { fields?: object[]; filters?: Filter[] }): Promise<Cell[][]> {
    const stream = {
      name: schema.name,
      namespace: schema.namespace,
      sync_mode: 'full_refresh',
      fields: (settings.fields ?? []).map((one) => ({
        selected: true,
        destination_name: null,
        destination_type: null,
        masking: 'none',
        ...one,
      })),
      filters: settings.filters ?? [],
      mapping: null,
      primary_key: null,
      cursor_field: null,
    } as never;
    const plan = planTransfer({ source: way, schema, stream });
    const map = createMapper(plan, KEYS);
    const rows: Cell[][] = [];
    const request = readRequest({ plan, schema, stream, state: null, window: null });
    for await (const batch of way.read(ctx(), request)) rows.push(...map(batch).rows);
    const id = plan.columns.findIndex(({ field }) => field.path[0] === 'id');
    return rows.toSorted((a, b) => Number(a[id]) - Number(b[id]));
  }
  const only = (...names: string[]) => schema.fields.map(({ path }) => ({ path, selected: names.includes(path[0]!) }));

  test.each(FILTERS)('%s %s %j', async (field, operator, value, ids) => {
    for (const way of WAYS) {
      const rows = await read(way, { fields: only('id'), filters: [{ field, operator, value }] });
      expect(rows.map(([id]) => Number(id))).toEqual(ids);
    }
  });

  test('several filters apply together, also on masked and unselected columns', async () => {
    const filters: Filter[] = [
      { field: 'name', operator: 'contains', value: 'n' },
      { field: 'amount', operator: 'gt', value: 0 },
    ];
    for (const way of WAYS) {
      const fields = [
        { path: ['name'], masking: 'redact' },
        { path: ['amount'], selected: false },
      ];
      const rows = await read(way, { fields, filters });
      expect(rows.map((row) => row.slice(0, 2))).toEqual([['1', '***']]);
    }
  });

  test.each(MASKS)('%s of every type is the same in source and engine, and NULL stays NULL', async (masking) => {
    const fields = schema.fields.filter(({ path }) => path[0] !== 'id').map(({ path }) => ({ path, masking }));
    const [pushed, engine = pushed] = await Promise.all(WAYS.map((way) => read(way, { fields })));
    expect(pushed).toEqual(engine);
    expect(engine![4]).toEqual(['5', null, null, null, null]);
    const name = ROWS[2]![1]!;
    const expected = {
      hash_sha256: Bun.SHA256.hash(name, 'hex'),
      hash_sha256_salted: KEYS.salted(name),
      redact: '***',
      encrypt: KEYS.encrypted(name),
      none: name,
    }[masking];
    expect(engine![2]![1]).toBe(expected);
  });

  test('unselected, renamed and converted fields', async () => {
    const fields = [
      { path: ['name'], destination_name: 'title' },
      { path: ['amount'], destination_type: 'string' },
      { path: ['day'], selected: false },
    ];
    const [pushed, engine = pushed] = await Promise.all(WAYS.map((way) => read(way, { fields })));
    expect(pushed).toEqual(engine);
    expect(engine![0]).toHaveLength(4);
  });
});
