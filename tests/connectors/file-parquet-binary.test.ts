import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ByteFormat, ConnectorContext } from '../../server/connectors/contract/connector.ts';
import { fileDestination } from '../../server/connectors/file/destination.ts';
import { openDuckDb } from '../../server/connectors/kits/duckdb/instance.ts';
import { postgresSource } from '../../server/connectors/postgres/source.ts';
import { heldMemory } from '../../server/platform/memory/held-memory.ts';
import { requestOf, sourceConfig, streamNamed, targetOf, twoDatabases } from './postgres-support.ts';
import { contextOf } from './places.ts';

const sides = twoDatabases();
const root = mkdtempSync(join(tmpdir(), 'data-pipelines-parquet-binary-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const TYPES: Record<string, string[]> = {
  smallint: ['-32768', '32767', '-1'],
  integer: ['-2147483648', '2147483647', '-1'],
  bigint: ['-9223372036854775808', '9223372036854775807', '-1', '4294967296'],
  oid: ['4294967295', '0'],
  'numeric(3,1)': ['-99.9', '0.1', '10'],
  'numeric(9,0)': ['-999999999', '10000', '0'],
  'numeric(12,2)': ['-0.01', '9999999999.99', '0.00', '10000.10'],
  'numeric(18,3)': ['-999999999999999.999', '9007199254740.993', '0.001', '100000000'],
  'numeric(38,9)': [
    '12345678901234567890123456789.123456789',
    '-0.000000001',
    '-99999999999999999999999999999.999999999',
  ],
  real: ['1.1', 'NaN', '-Infinity', '1e-38'],
  'double precision': ['0.1', '-0', '1.7976931348623157e308', 'NaN', 'Infinity'],
  boolean: ['true', 'false'],
  text: ['', '\\N', 'twelve bytes', 'thirteen byte', 'a\tb\nc\rd\\te', 'ä€😀𐍈\u{10FFFD}', 'x'.repeat(100_000)],
  'character varying(20)': ['', 'trailing  ', 'ünïcödé'],
  'character(6)': ['ab', ''],
  name: ['a name'],
  bytea: ['\\x', '\\x00ff5c0a0d09', `\\x${'de'.repeat(5000)}`],
  date: ['2024-02-29', '1969-12-31', 'infinity', '-infinity', '0001-01-01'],
  'time without time zone': ['23:59:59.999999', '00:00:00'],
  'timestamp without time zone': ['2024-12-31 23:59:59.999999', '1969-12-31 23:59:59', 'infinity', '-infinity'],
  'timestamp(3) without time zone': ['2024-12-31 23:59:59.123'],
  'timestamp with time zone': ['2024-12-31 23:59:59.123456+05:30', '-infinity', 'infinity', '1883-11-18 12:03:57+00'],
  json: ['{"a" :  1, "a": 2}', '12345678901234567890.10', 'null'],
  jsonb: ['{"big": 12345678901234567890123, "f": 1.10}', '[]'],
  uuid: [
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
    '00000000-0000-0000-0000-000000000000',
    'ffffffff-ffff-ffff-0000-ffffffffffff',
  ],
};

const destination = (path: string) =>
  contextOf(fileDestination, { filesRoot: root }, { settings: { path, format: 'parquet' } }) as ConnectorContext<never>;

/** Moves a whole table into Parquet files, in chunks of `piece` bytes. */
async function moved(table: string, { format, piece }: { format: ByteFormat; piece: number }) {
  const stream = await streamNamed(sides.source, table);
  const request = requestOf(stream);
  const path = `${table}-${format}-${piece}`;
  const writer = await fileDestination.open(destination(path), targetOf(stream));
  const source = await postgresSource.copy!(sourceConfig(sides.source).ctx, request, format);
  async function* chunks() {
    for await (const chunk of source.chunks) {
      if (format === 'pgcopy-binary') expect(heldMemory()).toBeGreaterThan(0);
      for (let at = 0; at < chunk.length; at += piece) yield chunk.subarray(at, at + piece);
    }
  }
  try {
    expect(writer.byteFormats).toEqual(['pgcopy-binary', 'pgcopy-text']);
    await writer.pipe!({ format, chunks: chunks(), rows: source.rows });
    const counts = await writer.finish(null);
    return { files: join(root, path, table, '*.parquet'), counts, folder: join(root, path, table) };
  } catch (error) {
    await writer.abort();
    throw error;
  } finally {
    expect(heldMemory()).toBe(0);
  }
}

async function rowsOf(sql: string) {
  const duck = await openDuckDb();
  try {
    return (await duck.connection.runAndReadAll(sql)).getRowsJson();
  } finally {
    duck.close();
  }
}

const typesOf = async (files: string) =>
  (await rowsOf(`DESCRIBE FROM read_parquet('${files}')`)).map(([name, type]) => [name, type]);

beforeAll(async () => {
  const { sql } = sides.source;
  const types = Object.keys(TYPES);
  const columns = types.map((type, index) => `c${index} ${type}`).join(', ');
  await sql.unsafe(`create table everything (id integer, ${columns})`);
  const most = Math.max(...Object.values(TYPES).map((values) => values.length));
  for (let row = 0; row <= most; row += 1) {
    const values = Object.entries(TYPES).map(([type, of]) =>
      of[row] === undefined ? 'null' : `'${of[row]}'::${type}`,
    );
    await sql.unsafe(`insert into everything values (${row}, ${values.join(', ')})`);
  }
  // NULLs and values in random order, over several chunks.
  const mixed = types.map((type, at) => `case when (g * ${at + 3}) % 7 > 1 then '${TYPES[type]![0]}'::${type} end`);
  await sql.unsafe(`insert into everything select g, ${mixed.join(', ')} from generate_series(1000, 6000) g`);
});

test('values of every type are the same in binary form as by text, wherever the bytes are cut', async () => {
  const text = await moved('everything', { format: 'pgcopy-text', piece: 1 << 20 });
  const types = await typesOf(text.files);
  for (const piece of [1 << 20, 1009]) {
    const binary = await moved('everything', { format: 'pgcopy-binary', piece });
    expect(await typesOf(binary.files)).toEqual(types);
    const [a, b] = [binary, text].map(({ files }) => `FROM read_parquet('${files}')`);
    expect(await rowsOf(`(${a} EXCEPT ALL ${b}) UNION ALL (${b} EXCEPT ALL ${a})`)).toEqual([]);
    expect(binary.counts.rows_loaded).toBe(text.counts.rows_loaded);
    expect(await rowsOf(`SELECT count(*)::INTEGER ${a}`)).toEqual([[text.counts.rows_loaded]]);
  }
});

test('row groups name the smallest and the largest values, by which readers skip them', async () => {
  const { files } = await moved('everything', { format: 'pgcopy-binary', piece: 1 << 19 });
  const names = ['id', ...Object.keys(TYPES).map((_, index) => `c${index}`)];
  const bare = /^(boolean|bytea|jsonb?|uuid|numeric\(38|real|double)/;
  const expected = names.map((name, index) => {
    const type = ['integer', ...Object.keys(TYPES)][index]!;
    // Some readers sort NaN behind all numbers, others nowhere.
    const bounds = bare.test(type) ? 'NULL, NULL' : `min(${name})::VARCHAR, max(${name})::VARCHAR`;
    return `SELECT '${name}', count(*) FILTER (${name} IS NULL), ${bounds} FROM read_parquet('${files}')`;
  });
  expect(
    await rowsOf(
      `SELECT path_in_schema, stats_null_count, stats_min_value, stats_max_value FROM parquet_metadata('${files}')`,
    ),
  ).toEqual(await rowsOf(expected.join(' UNION ALL ')));
});

test('bounds of numbers without NaN span both zeros', async () => {
  await sides.source.sql.unsafe(
    `create table zeros as select g as id, 0::float8 as d, '-0'::float4 as f, g / 8.0::float8 as e from generate_series(-3, 9) g`,
  );
  const { files } = await moved('zeros', { format: 'pgcopy-binary', piece: 1000 });
  expect(
    await rowsOf(
      `SELECT stats_min_value, stats_max_value FROM parquet_metadata('${files}') WHERE path_in_schema <> 'id'`,
    ),
  ).toEqual([
    ['-0.0', '0.0'],
    ['-0.0', '0.0'],
    ['-0.375', '1.125'],
  ]);
});

test('NULLs of many columns are kept where row groups end', async () => {
  const columns = Array.from({ length: 300 }, (_, at) => `case when g % ${at + 2} = 0 then g end as c${at}`);
  await sides.source.sql.unsafe(
    `create table sparse as select g as id, null::text as none, ${columns.join(', ')} from generate_series(1, 30000) g`,
  );
  const { files } = await moved('sparse', { format: 'pgcopy-binary', piece: 65536 });
  const kept = columns.map((_, at) => `c${at} IS NOT DISTINCT FROM CASE WHEN id % ${at + 2} = 0 THEN id END`);
  expect(
    await rowsOf(
      `SELECT count(*)::INTEGER, count(none)::INTEGER, bool_and(${kept.join(' AND ')}) FROM read_parquet('${files}')`,
    ),
  ).toEqual([[30_000, 0, true]]);
  expect(await rowsOf(`SELECT count(DISTINCT row_group_id) > 1 FROM parquet_metadata('${files}')`)).toEqual([[true]]);
});

test('dates before the common era are kept, which DuckDB cannot read as text', async () => {
  await sides.source.sql.unsafe(`create table ancient as select 1 as id, '0044-03-15 BC'::date as d,
    '4713-01-01 00:00:00+00 BC'::timestamptz as t, '24:00:00'::time as n`);
  const { files } = await moved('ancient', { format: 'pgcopy-binary', piece: 100 });
  expect(await rowsOf(`SELECT * FROM read_parquet('${files}')`)).toEqual([
    [1, '0044-03-15 (BC)', '4713-01-01 (BC) 00:00:00+00', '24:00:00'].map((cell) => (cell === 1 ? '1' : cell)),
  ]);
});

test('an empty table and a single column of empty texts are written', async () => {
  await sides.source.sql.unsafe(
    `create table single (t text); insert into single select '' from generate_series(1, 3000)`,
  );
  const stream = await streamNamed(sides.source, 'single');
  const writer = await fileDestination.open(destination('single'), targetOf(stream));
  expect(writer.byteFormats).toEqual(['pgcopy-binary']);
  await writer.abort();
  await sides.source.sql.unsafe('create table nothing (id int, t text)');
  const { counts, folder } = await moved('nothing', { format: 'pgcopy-binary', piece: 5 });
  expect(counts.rows_loaded).toBe(0);
  expect(readdirSync(folder)).toEqual([]);
});

test('types without a binary reader are written as text', async () => {
  await sides.source.sql.unsafe(
    `create table others as select 1 as id, 1.5::numeric as n, '{1,2}'::int[] as a, 0.00123::numeric(3,5) as small`,
  );
  const stream = await streamNamed(sides.source, 'others');
  const writer = await fileDestination.open(destination('others'), targetOf(stream));
  expect(writer.byteFormats).toEqual(['pgcopy-text']);
  const source = await postgresSource.copy!(sourceConfig(sides.source).ctx, requestOf(stream), 'pgcopy-text');
  await writer.pipe!(source);
  await writer.finish(null);
  expect(await rowsOf(`FROM read_parquet('${join(root, 'others', 'others', '*.parquet')}')`)).toEqual([
    ['1', '1.5', '{1,2}', '0.00123'],
  ]);
});

test('columns that the engine masks are taken as texts in binary form', async () => {
  await sides.source.sql.unsafe(
    `create table veiled as select g as id, md5(g::text) as note from generate_series(1, 9) g`,
  );
  const stream = await streamNamed(sides.source, 'veiled');
  const target = targetOf(stream);
  const [id, note] = target.columns;
  const masked = { ...note!, source_type: null, dialect: null, masked: true };
  const writer = await fileDestination.open(destination('veiled'), { ...target, columns: [id!, masked] });
  expect(writer.byteFormats).toEqual(['pgcopy-binary', 'pgcopy-text']);
  await writer.pipe!(await postgresSource.copy!(sourceConfig(sides.source).ctx, requestOf(stream), 'pgcopy-binary'));
  await writer.finish(null);
  const from = `read_parquet('${join(root, 'veiled', 'veiled', '*.parquet')}')`;
  expect(await rowsOf(`SELECT count(*)::INTEGER, bool_and(note = md5(id::VARCHAR)) FROM ${from}`)).toEqual([[9, true]]);
});

test('a value that does not fit is reported with row and column, and nothing remains', async () => {
  await sides.source.sql.unsafe(`create table misfit as select g as id, 1.5::numeric(9,2) as amount from generate_series(1, 5000) g;
    update misfit set amount = 'NaN' where id = 4321;
    create table late as select 1 as id, '294276-12-31 23:59:59'::timestamp as at`);
  const error = await moved('misfit', { format: 'pgcopy-binary', piece: 65536 }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'value_does_not_fit' });
  expect(String(error)).toMatch(/row \d+, column "amount"/);
  expect(readdirSync(join(root, 'misfit-pgcopy-binary-65536', 'misfit'))).toEqual([]);
  await expect(moved('late', { format: 'pgcopy-binary', piece: 65536 })).rejects.toMatchObject({
    code: 'value_does_not_fit',
  });
});

test('a long stream becomes several files, even with rows of several megabytes', async () => {
  await sides.source.sql.unsafe(`create table wide as select g as id, repeat(md5(g::text), 100000) as t from generate_series(1, 30) g;
    create table long as select g as id, repeat(md5(g::text), 30) as t from generate_series(1, 80000) g`);
  for (const table of ['wide', 'long']) {
    const { files, folder } = await moved(table, { format: 'pgcopy-binary', piece: 65536 });
    expect(readdirSync(folder).length).toBe(2);
    const expected = `count(*) = (SELECT count(DISTINCT id) FROM read_parquet('${files}'))`;
    const of = table === 'wide' ? 100_000 : 30;
    expect(
      await rowsOf(
        `SELECT count(*)::INTEGER, ${expected}, bool_and(t = repeat(md5(id::VARCHAR), ${of})) FROM read_parquet('${files}')`,
      ),
    ).toEqual([[table === 'wide' ? 30 : 80_000, true, true]]);
  }
  expect(readdirSync(root).filter((name) => name.startsWith('.'))).toEqual([]);
});
