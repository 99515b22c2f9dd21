import { afterAll, beforeAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import type {
  AnyDestination,
  AnySource,
  Cell,
  ConnectorContext,
  StreamSchema,
} from '../../server/connectors/contract/connector.ts';
import { duckDbDestination } from '../../server/connectors/duckdb/destination.ts';
import { duckDbSource } from '../../server/connectors/duckdb/source.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { sqliteSource } from '../../server/connectors/sqlite/source.ts';
import { duckDbFolder, onDuckDb } from './duckdb-places.ts';
import { targetOf, twoDatabases } from './postgres-support.ts';
import { readBatches, requestOf } from './reading.ts';
import { type SqlitePlace, sqlitePlace } from './sqlite-support.ts';
import { contextOf } from './places.ts';

const sides = twoDatabases();
let folder: Awaited<ReturnType<typeof duckDbFolder>>;
let sqlite: SqlitePlace;
beforeAll(async () => {
  folder = await duckDbFolder();
  sqlite = await sqlitePlace();
});
afterAll(async () => {
  await folder.close();
  await sqlite.close();
});

interface End<Connector> {
  connector: Connector;
  ctx: ConnectorContext<unknown>;
}
const duckDb = <Connector extends AnySource | AnyDestination>(connector: Connector, path: string): End<Connector> => ({
  connector,
  ctx: contextOf(connector, { filesRoot: folder.filesRoot }, { settings: { path } }),
});
const postgres = <Connector extends AnySource | AnyDestination>(
  connector: Connector,
  side: 'source' | 'destination',
) => {
  const settings = { ...sides[side].server, ssl_mode: 'disable' };
  return { connector, ctx: contextOf(connector, { filesRoot: folder.filesRoot }, { settings }) };
};

/** Moves a table. @returns its schema and cells as read from the source */
async function move(name: string, from: End<AnySource>, to: End<AnyDestination>) {
  const stream = (await from.connector.discover(from.ctx)).find((one) => one.name === name) as StreamSchema;
  const batches = await readBatches(from.connector, from.ctx, requestOf(stream));
  const writer = await to.connector.open(to.ctx, targetOf(stream, { mode: 'overwrite' }));
  for (const batch of batches) await writer.write(batch);
  await writer.finish(null);
  return { stream, cells: batches.flatMap(({ rows }) => rows) };
}
const inPostgres = async ({ name, fields }: StreamSchema): Promise<Cell[][]> => {
  const list = fields.map(({ path }) => `${JSON.stringify(path[0])}::text`).join(', ');
  return (await sides.destination.sql.unsafe(`select ${list} from "${name}"`).values()) as Cell[][];
};
const typesInPostgres = async (name: string) => {
  const rows = await sides.destination.sql`select a.attname, format_type(a.atttypid, a.atttypmod) as type
    from pg_attribute a where attrelid = ${name}::regclass and attnum > 0 order by attnum`;
  return Object.fromEntries(rows.map(({ attname, type }) => [attname, type]));
};

test('SQLite to PostgreSQL: every cell, in columns of its type', async () => {
  sqlite.write.run(`create table from_sqlite (big integer primary key, ratio double, amount decimal(10, 2), name text,
    data blob, flag boolean, day date, local datetime, instant timestamp, doc json, odd integer)`);
  sqlite.write.run(`insert into from_sqlite values
    (9223372036854775807, 0.1, 12.345, '', x'', 1, '2024-02-29', '2026-01-31 23:59:59.123456', '2026-01-31T23:59:59.123Z', '{"a": 12345678901234567890}', 'x'),
    (-9223372036854775808, 1.5e-7, 9007199254740993, 'é 漢字 🦄' || char(9, 10, 13) || '\\N', x'00ff5c', 0, '0001-01-01', '2026-01-31 00:00:00.5', '2026-01-31T00:00:00.000Z', '[1]', 2.5),
    (0, null, null, null, null, null, null, null, null, null, null)`);
  const { stream, cells } = await move(
    'from_sqlite',
    { connector: sqliteSource, ctx: sqlite.context() },
    postgres(postgresDestination, 'destination'),
  );
  expect(await typesInPostgres('from_sqlite')).toEqual({
    big: 'bigint',
    ratio: 'numeric',
    amount: 'numeric',
    name: 'text',
    data: 'bytea',
    flag: 'boolean',
    day: 'date',
    local: 'timestamp without time zone',
    instant: 'timestamp with time zone',
    doc: 'jsonb',
    odd: 'text',
  });
  // PostgreSQL writes the same number and time in another way.
  const shown: Record<string, string> = {
    '1.5e-7': '0.00000015',
    '2026-01-31 00:00:00.000+00': '2026-01-31 00:00:00+00',
  };
  const exact = cells.map((row) => row.map((cell) => shown[cell ?? ''] ?? cell));
  expect(await inPostgres(stream)).toEqual(exact.toSorted((a, b) => (BigInt(a[0]!) < BigInt(b[0]!) ? -1 : 1)));
});

test('DuckDB to PostgreSQL: every cell, in columns of its type', async () => {
  await onDuckDb(
    join(folder.filesRoot, 'from.duckdb'),
    `create table from_duckdb (big bigint, huge hugeint, exact decimal(38, 10), ratio double, small float, name varchar,
       data blob, flag boolean, day date, local timestamp, instant timestamptz, hour time, nanos timestamp_ns, list int[],
       nested struct(a hugeint, b decimal(38, 20)[]), key uuid, kind enum('a', 'b'), span interval)`,
    `insert into from_duckdb values
      (9223372036854775807, 170141183460469231731687303715884105727, 1234567890123456789012345678.0123456789, 0.1, 0.1, '', ''::blob, true,
       '0044-03-15 (BC)', '2026-01-31 23:59:59.123456', '2026-01-31 23:59:59.123456+02', '23:59:59.123456', '2026-01-31 23:59:59.123456789', [1, null],
       {a: 170141183460469231731687303715884105727, b: [1.00000000000000000001]}, '00112233-4455-6677-8899-aabbccddeeff', 'b', interval '1 year 2 days'),
      (-9223372036854775808, -1, -0.0000000001, 'nan', '-inf', 'é 漢字 🦄' || chr(9) || chr(10) || '\\N', '\\x00\\xFF\\x5C'::blob, false,
       'infinity', '0044-03-15 (BC) 01:02:03', '-infinity', '00:00:00', null, [], null, null, null, null)`,
  );
  const { stream, cells } = await move(
    'from_duckdb',
    duckDb(duckDbSource, 'from.duckdb'),
    postgres(postgresDestination, 'destination'),
  );
  expect(await typesInPostgres('from_duckdb')).toMatchObject({
    big: 'bigint',
    huge: 'numeric',
    exact: 'numeric',
    name: 'text',
    data: 'bytea',
    flag: 'boolean',
    day: 'date',
    local: 'timestamp without time zone',
    instant: 'timestamp with time zone',
    hour: 'time without time zone',
    nanos: 'text',
    list: 'jsonb',
    nested: 'jsonb',
  });
  expect(cells[0]).toEqual([
    '9223372036854775807',
    '170141183460469231731687303715884105727',
    '1234567890123456789012345678.0123456789',
    '0.1',
    '0.1',
    '',
    '\\x',
    'true',
    '0044-03-15 BC',
    '2026-01-31 23:59:59.123456',
    '2026-01-31 21:59:59.123456+00',
    '23:59:59.123456',
    '2026-01-31 23:59:59.123456789',
    '[1,null]',
    '{"a":170141183460469231731687303715884105727,"b":[1.00000000000000000001]}',
    '00112233-4455-6677-8899-aabbccddeeff',
    'b',
    '1 year 2 days',
  ]);
  const compact = (rows: Cell[][]) =>
    rows.map((row) => row.map((cell) => (/^[[{]/.test(cell ?? '') ? cell!.replaceAll(' ', '') : cell)));
  expect(compact(await inPostgres(stream))).toEqual(cells);
});

test('PostgreSQL to DuckDB: every cell comes back as it was', async () => {
  await sides.source.sql.unsafe(`create table from_pg (id bigint primary key, small smallint, exact numeric(38, 10), free numeric,
    ratio double precision, single real, name text, short char(3), data bytea, flag boolean, day date, local timestamp, instant timestamptz, hour time,
    zoned timetz, doc jsonb, raw json, list int[], key uuid, span interval, address inet)`);
  await sides.source.sql.unsafe(`insert into from_pg values
    (9223372036854775807, -32768, 1234567890123456789012345678.0123456789, 1e40 + 1e-40, 0.1, 0.1, '', 'a', '\\x', true, '0044-03-15 BC',
     '2026-01-31 23:59:59.123456', '2026-01-31 23:59:59.123456+02', '24:00:00', '12:00+02', '{"a": 12345678901234567890.10}', '{"a":1e400, "a" : 1}', '{1,NULL}',
     '00112233-4455-6677-8899-aabbccddeeff', '1 year 2 days', '::1/64'),
    (-9223372036854775808, 0, -0.0000000001, 'NaN', 'Infinity', '-Infinity', E'é 漢字 🦄\\t\\n\\r\\\\N', '', '\\x00ff5c', false, 'infinity',
     '0044-03-15 01:02:03 BC', '-infinity', '00:00:00.000001', null, '[]', 'null', '{}', null, null, null),
    (0${', null'.repeat(20)})`);
  const moved = await move('from_pg', postgres(postgresSource, 'source'), duckDb(duckDbDestination, 'to.duckdb'));
  const types = Object.fromEntries(
    await onDuckDb(
      join(folder.filesRoot, 'to.duckdb'),
      "select column_name, data_type from duckdb_columns() where table_name = 'from_pg'",
    ),
  );
  expect(types).toMatchObject({
    id: 'BIGINT',
    exact: 'DECIMAL(38,10)',
    free: 'VARCHAR',
    ratio: 'DOUBLE',
    single: 'FLOAT',
    name: 'VARCHAR',
    data: 'BLOB',
    flag: 'BOOLEAN',
    day: 'DATE',
    local: 'TIMESTAMP',
    instant: 'TIMESTAMP WITH TIME ZONE',
    hour: 'TIME',
    doc: 'JSON',
    raw: 'JSON',
    list: 'VARCHAR',
    key: 'UUID',
  });
  const back: End<AnySource> = duckDb(duckDbSource, 'to.duckdb');
  const [stream] = await back.connector.discover(back.ctx);
  const batches = await readBatches(back.connector, back.ctx, requestOf(stream as StreamSchema));
  expect(batches.flatMap(({ rows }) => rows)).toEqual(moved.cells);
});
