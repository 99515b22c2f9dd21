import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ByteFormat, ReadRequest, StreamSchema } from '../../server/connectors/contract/connector.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { literal, openDuckDb } from '../../server/connectors/kits/duckdb/instance.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { heldMemory } from '../../server/platform/memory/held-memory.ts';
import { contextOf } from './places.ts';
import { destinationConfig, requestOf, targetOf, twoDatabases } from './postgres-support.ts';

const sides = twoDatabases();
const root = mkdtempSync(join(tmpdir(), 'data-pipelines-parquet-copy-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function write(name: string, select: string): Promise<void> {
  const duck = await openDuckDb();
  await duck.connection.run(`COPY (${select}) TO ${literal(join(root, name))} (FORMAT parquet)`);
  duck.close();
}

const context = (path: string) => contextOf(fileSource, { filesRoot: root }, { settings: { path } }) as never;

async function streamOf(path: string): Promise<StreamSchema> {
  const [stream] = await fileSource.discover(context(path));
  return stream!;
}

interface Loading {
  path: string;
  stream?: StreamSchema;
  more?: Partial<ReadRequest>;
}

/** Loads files into a table. @returns the format in which they came */
async function load(table: string, format: ByteFormat, { path, stream, more }: Loading): Promise<ByteFormat> {
  const found = stream ?? (await streamOf(path));
  const request = requestOf(found, more);
  expect(fileSource.byteFormats!(request)).toContain(format);
  const writer = await postgresDestination.open(
    destinationConfig(sides.destination).ctx,
    targetOf(found, { table, mode: 'append', stream_run_id: crypto.randomUUID() }),
  );
  try {
    expect(writer.byteFormats).toEqual(['pgcopy-binary', 'pgcopy-text']);
    const bytes = await fileSource.copy!(context(path), request, format);
    await writer.pipe!(bytes);
    const counts = await writer.finish(null);
    expect(counts.rows_loaded).toBe(bytes.rows());
    return bytes.format;
  } catch (error) {
    await writer.abort();
    throw error;
  } finally {
    expect(heldMemory()).toBe(0);
  }
}

/** Loads files both ways. @returns the rows that one of the tables has more of, as text, and their number */
async function differences(name: string, loading: Loading) {
  const { sql } = sides.destination;
  for (const format of ['pgcopy-binary', 'pgcopy-text'] as const) {
    expect(await load(`${name}_${format.slice(7)}`, format, loading)).toBe(format);
  }
  const [binary, text] = ['binary', 'text'].map((form) => `(select t::text from "${name}_${form}" t)`);
  const rows = await sql.unsafe(`(${binary} except all ${text}) union all (${text} except all ${binary})`);
  const [{ count } = { count: 0 }] = await sql.unsafe(`select count(*)::int from "${name}_binary"`);
  return { rows: [...new Set(rows.map((row) => String(row.t)))], count: Number(count) };
}

const VALUES: Record<string, string[]> = {
  BIGINT: ['-9223372036854775808', '9223372036854775807', '-1', '4294967296'],
  INTEGER: ['-2147483648', '2147483647'],
  UTINYINT: ['0', '255'],
  UBIGINT: ['18446744073709551615', '0'],
  HUGEINT: ['-17', '99999999'],
  'DECIMAL(3,1)': ['-99.9', '0.1', '10', '0'],
  'DECIMAL(9,0)': ['-999999999', '10000', '9999'],
  'DECIMAL(18,2)': ['-0.01', '9999999999999999.99', '0.00', '10000.10', '100000000'],
  'DECIMAL(18,18)': ['0.000000000000000001', '-0.123456789012345678', '0.0001'],
  'DECIMAL(38,9)': [
    '12345678901234567890123456789.123456789',
    '-0.000000001',
    '-99999999999999999999999999999.999999999',
  ],
  FLOAT: ['1.1', 'nan', '-inf', '1e-38', '16777216', '3.4028235e38'],
  DOUBLE: [
    '0.1',
    '-0',
    '1',
    '1e15',
    '1e16',
    '1e22',
    '1.5e300',
    '-2.2250738585072014e-308',
    '5e-324',
    '1.7976931348623157e308',
    '123456.789',
    '0.00012',
    'nan',
    'inf',
    '-inf',
  ],
  BOOLEAN: ['true', 'false'],
  VARCHAR: ['', '\\N', 'twelve bytes', 'thirteen byte', 'a\tb\nc\rd\\te', 'ä€😀𐍈\u{10FFFD}', 'x'.repeat(20_000)],
  UUID: ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
  BLOB: ['', '\\x00\\xff\\x5c\\x0a', 'long bytes, more than twelve'],
  DATE: ['2024-02-29', '1969-12-31', 'infinity', '-infinity', '0001-01-01', '0044-03-15 (BC)', '4713-11-24 (BC)'],
  TIME: ['23:59:59.999999', '00:00:00'],
  TIMESTAMP: [
    '2024-12-31 23:59:59.999999',
    '1969-12-31 23:59:59',
    '1999-12-31 23:59:59.999999',
    'infinity',
    '-infinity',
  ],
  TIMESTAMP_S: ['2024-12-31 23:59:59'],
  TIMESTAMP_NS: ['2024-12-31 23:59:59.123456'],
  TIMESTAMPTZ: ['2024-12-31 23:59:59.123456+05:30', '-infinity', 'infinity', '0044-03-15 (BC) 00:00:00+00'],
  JSON: ['{"a" :  1, "big": 12345678901234567890.10}', 'null'],
};

test('every value is the same in PostgreSQL by binary COPY and by text', async () => {
  const types = Object.entries(VALUES);
  const most = Math.max(...types.map(([, values]) => values.length));
  const rows = Array.from({ length: most + 1 }, (_, row) =>
    types.map(([type, values]) => `${values[row] === undefined ? 'NULL' : literal(values[row])}::${type}`).join(', '),
  );
  const names = types.map((_, at) => `c${at}`).join(', ');
  // More rows than a chunk of DuckDB has, with and without NULLs.
  const select = `SELECT v.*, [c0] AS list, {'a': c13} AS struct, c4 AS no_null_before FROM (VALUES ${rows.map((row) => `(${row})`).join(', ')}) v(${names}), range(300)`;
  await write('every.parquet', select);
  expect(await differences('every', { path: 'every.parquet' })).toEqual({ rows: [], count: 300 * (most + 1) });
});

test('numbers keep the decimals that their text has', async () => {
  const numbers = `hash(i) / 1e9 AS a, (hash(i) % 1000000) / 64 AS b, 1 / (i + 1) AS c, (i - 5000)::DOUBLE AS d,
    (i / 7)::FLOAT AS e, i * 1e13 AS f, exp(i / 10 - 500) AS g`;
  await write('numbers.parquet', `SELECT ${numbers} FROM range(10000) r(i)`);
  expect(await differences('numbers', { path: 'numbers.parquet' })).toEqual({ rows: [], count: 10_000 });
});

test('a stream of files whose columns have other types is loaded as by text', async () => {
  await write('mixed-1.parquet', `SELECT 1 AS a, 'x' AS b, 7 AS c, DATE '2024-01-01' AS day`);
  await write('mixed-2.parquet', `SELECT 2.5::DOUBLE AS a, 12 AS b, 8::UTINYINT AS c, DATE '2024-01-02' AS day`);
  const loading = { path: 'mixed-*.parquet' };
  expect(await differences('mixed', loading)).toEqual({ rows: [], count: 2 });
  // Discovery saw whole numbers and dates only.
  await write('late-1.parquet', `SELECT 1 AS a, DATE '2024-01-01' AS day, true AS flag`);
  const stream = await streamOf('late-*.parquet');
  await write('late-2.parquet', `SELECT '-12' AS a, '2024-02-03' AS day, 'false' AS flag`);
  expect(await differences('late', { path: 'late-*.parquet', stream })).toEqual({ rows: [], count: 2 });
  await write('late-2.parquet', `SELECT '1.5' AS a, '2024-02-03' AS day, 'false' AS flag`);
  const refused = load('refused', 'pgcopy-binary', { path: 'late-*.parquet', stream });
  await expect(refused).rejects.toThrow('late-2.parquet: Invalid Input Error: "1.5" is not of type integer');
});

test('moments that PostgreSQL cannot hold are refused, not turned into others', async () => {
  for (const [name, value] of [
    ['date', `DATE '5877642-06-25 (BC)'`],
    ['timestamp', `TIMESTAMP '290309-12-22 (BC) 00:00:00'`],
    ['early', `TIMESTAMP '100000-01-01 (BC) 00:00:00'`],
  ] as const) {
    await write(`${name}.parquet`, `SELECT ${value} AS at`);
    await expect(load(name, 'pgcopy-binary', { path: `${name}.parquet` })).rejects.toThrow('out of range');
  }
});

test('texts with NUL are refused, and are lines where it may be removed', async () => {
  for (const name of ['short', 'long']) {
    const more = name === 'long' ? `|| repeat('x', 10000)` : '';
    await write(`nul-${name}.parquet`, `SELECT 'a' || chr(0) || 'b' ${more} AS t, 1 AS i FROM range(3000)`);
    const refused = load(name, 'pgcopy-binary', { path: `nul-${name}.parquet` });
    await expect(refused).rejects.toThrow('a text contains the character NUL');
  }
  const request = requestOf(await streamOf('nul-short.parquet'), { inexact_values: 'allow' });
  expect(fileSource.byteFormats!(request)).toEqual(['pgcopy-text']);
});

test('files of which one has another format come as text', async () => {
  await write('both-1.parquet', 'SELECT 1 AS a');
  const stream = await streamOf('both-*');
  await Bun.write(join(root, 'both-2.csv'), 'a\n2\n');
  expect(await load('both', 'pgcopy-binary', { path: 'both-*', stream })).toBe('pgcopy-text');
  const rows = await sides.destination.sql`select a from "both" order by a`;
  expect(rows.map(({ a }) => Number(a))).toEqual([1, 2]);
});
