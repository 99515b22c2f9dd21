import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { literal, openDuckDb } from '../../server/connectors/kits/duckdb/instance.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { decodeCopyText } from '../../server/connectors/cells/copy-text.ts';
import { readBatches, requestOf } from './reading.ts';
import { contextOf } from './places.ts';

const root = mkdtempSync(join(tmpdir(), 'data-pipelines-parquet-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const TEXTS = ['plain', '', '\\', '\\N', '\\.', 'a\tb', 'two\nlines\r\n', 'é 漢字 🦄', ' \\t ', '"quoted"'];

async function write(name: string, select: string): Promise<string> {
  const duck = await openDuckDb();
  await duck.connection.run(`COPY (${select}) TO ${literal(join(root, name))} (FORMAT parquet)`);
  duck.close();
  return name;
}

/** The same file by cells and by bytes, with COPY's escapes decoded. */
async function bothWays(path: string, inexact_values: 'refuse' | 'allow' = 'refuse') {
  const warnings: string[] = [];
  const context = {
    ...contextOf(fileSource, { filesRoot: root }, { settings: { path } }),
    warn: (code: string) => void warnings.push(code),
  };
  const [stream] = await fileSource.discover(context as never);
  if (!stream) throw new Error('no stream');
  const request = { ...requestOf(stream), inexact_values };
  expect(fileSource.byteFormats?.(request)).toContain('pgcopy-text');
  expect(fileSource.byteFormats?.({ ...request, sync_mode: 'incremental' })).toEqual([]);
  const cells = (await readBatches(fileSource, context, request)).flatMap(({ rows }) => rows);
  const bytes = await fileSource.copy?.(context as never, request, 'pgcopy-text');
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes?.chunks ?? []) chunks.push(chunk);
  const copied = decodeCopyText(Buffer.concat(chunks).toString());
  expect(bytes?.rows()).toBe(copied.length);
  return { cells, copied, warnings };
}

test.each([
  ['DECIMAL(5,2)', 'DECIMAL(9,4)', 'DECIMAL(9,4)'],
  ['DECIMAL(9,4)', 'DECIMAL(12,2)', 'DECIMAL(14,4)'],
  ['DECIMAL(38,0)', 'DECIMAL(9,4)', null],
  ['FLOAT', 'DOUBLE', 'DOUBLE'],
  ['DECIMAL(5,2)', 'DOUBLE', null],
  ['INTEGER', 'BIGINT', null],
  ['UUID', 'VARCHAR', null],
])('a column that is %s in one file and %s in another one is declared as %s', async (one, other, both) => {
  const folder = `${one} and ${other}`.replaceAll(/\W+/g, '_');
  for (const [name, type] of Object.entries({ a: one, b: other })) {
    const value = type === 'UUID' ? 'uuid()' : '1';
    await write(`${folder}_${name}.parquet`, `SELECT ${value}::${type} AS value`);
  }
  const settings = { path: `${folder}_*.parquet` };
  const [stream] = await fileSource.discover(contextOf(fileSource, { filesRoot: root }, { settings }) as never);
  expect(stream?.fields.map(({ source_type, dialect }) => [source_type, dialect])).toEqual([[both, 'duckdb']]);
});

test('every value of a Parquet file is the same by cells and by bytes', async () => {
  const texts = [...TEXTS.map(literal), 'NULL'].map((text) => `(${text})`).join(', ');
  const path = await write(
    'hard.parquet',
    `SELECT t, encode(t) AS bytes, [t, 'x'] AS list, {'a': t} AS struct, length(t) AS whole,
      CASE WHEN t = '' THEN NULL ELSE 12345678901234567890.000000001::DECIMAL(38, 9) END AS amount,
      CASE t WHEN 'plain' THEN 'nan' WHEN '' THEN '-inf' ELSE '0.1' END::DOUBLE AS ratio, t = '' AS on_off,
      DATE '2026-02-28' AS day, TIMESTAMPTZ '2026-01-31 23:59:59.123456+02' AS at, TIMESTAMP '2026-01-31 00:00:00' AS local
      FROM (VALUES ${texts}) v(t)`,
  );
  const { cells, copied, warnings } = await bothWays(path);
  expect(cells.map(([text]) => text ?? null)).toEqual([...TEXTS, null]);
  expect(copied).toEqual(cells);
  expect(cells[0]?.slice(5)).toEqual([
    '12345678901234567890.000000001',
    'NaN',
    'false',
    '2026-02-28',
    '2026-01-31 21:59:59.123456+00',
    '2026-01-31 00:00:00',
  ]);
  expect(warnings).toEqual([]);
});

test('NUL characters, which PostgreSQL cannot store, are refused, or removed from the bytes with a warning', async () => {
  const path = await write('nul.parquet', `SELECT 'a' || chr(0) || 'b' AS t FROM range(3000)`);
  await expect(bothWays(path)).rejects.toThrow('a text contains the character NUL');
  const { copied, warnings } = await bothWays(path, 'allow');
  expect(new Set(copied.map(([text]) => text))).toEqual(new Set(['ab']));
  expect(copied).toHaveLength(3000);
  expect(warnings).toEqual(['nul_character_removed']);
});

test('lines of any length keep their order and content', async () => {
  const text = `CASE WHEN i % 3 = 0 THEN '' WHEN i % 100 = 1 THEN repeat('long ', i % 977) ELSE i::VARCHAR END`;
  const path = await write('lengths.parquet', `SELECT ${text} AS t FROM range(10000) r(i)`);
  const { cells, copied } = await bothWays(path);
  const expected = Array.from({ length: 10_000 }, (_, i) =>
    i % 3 === 0 ? '' : i % 100 === 1 ? 'long '.repeat(i % 977) : String(i),
  );
  expect(cells.map(([t]) => t)).toEqual(expected);
  expect(copied).toEqual(cells);
});

test('instants have the text of a cell in UTC, even at the limits of their range', async () => {
  const instants = [
    'infinity',
    '-infinity',
    '0044-03-15 00:00:00+00 BC',
    '1969-12-31 23:59:59.999999+00',
    '294246-12-31 23:59:59+00',
  ];
  const values = instants
    .map((text) => `(TIMESTAMPTZ ${literal(text.replace(/^(\S+)(.*) BC$/, '$1 (BC)$2'))})`)
    .join(', ');
  const { cells, copied } = await bothWays(await write('instants.parquet', `FROM (VALUES ${values}, (NULL)) v("at")`));
  expect(copied).toEqual(cells);
  expect(cells.map(([at]) => at ?? null)).toEqual([...instants, null]);
});

test('nanoseconds are read: as timestamps where microseconds hold them, otherwise as text with all digits', async () => {
  const path = await write(
    'nanoseconds.parquet',
    `SELECT TIMESTAMP_NS '2026-01-31 23:59:59.123456' AS held, TIMESTAMP_NS '1969-12-31 23:59:59.123456789' AS finer,
      TIME_NS '00:00:00.000000001' AS clock UNION ALL SELECT NULL, NULL, NULL`,
  );
  const [stream] = await fileSource.discover(
    contextOf(fileSource, { filesRoot: root }, { settings: { path } }) as never,
  );
  expect(stream?.fields.map(({ type }) => type)).toEqual(['timestamp', 'string', 'string']);
  const { cells, copied, warnings } = await bothWays(path);
  expect(cells[0]).toEqual(['2026-01-31 23:59:59.123456', '1969-12-31 23:59:59.123456789', '00:00:00.000000001']);
  expect(copied).toEqual(cells);
  expect(warnings).toEqual([]);
});

test.each(['pgcopy-text', 'pgcopy-binary', null] as const)(
  'a nanosecond that discovery has not seen ends the run with file, column and value: %p',
  async (format) => {
    const path = await write(
      `fine_${format}.parquet`,
      `SELECT make_timestamp_ns(1000 * i + CASE i WHEN 2 THEN 1 ELSE 0 END) AS "at" FROM range(5) r(i)`,
    );
    const context = contextOf(fileSource, { filesRoot: root }, { settings: { path } });
    const [stream] = await fileSource.discover(context as never);
    expect(stream?.fields[0]?.type).toBe('timestamp');
    const read = async () => {
      if (!format) return readBatches(fileSource, context, requestOf(stream!));
      const { chunks } = await fileSource.copy!(context as never, requestOf(stream!), format);
      for await (const _ of chunks) continue;
    };
    await expect(read()).rejects.toMatchObject({
      code: 'finer_than_microseconds',
      message: `${path}, column "at": 1970-01-01 00:00:00.000002001 is finer than a microsecond. Write the files with microseconds, or the column as text`,
    });
  },
);

test('nanoseconds in UTC are loaded as microseconds, with a warning', async () => {
  const path = await write('utc.parquet', `SELECT TIMESTAMP_NS '2026-01-31 23:59:59.123456' AS "at", 1 AS other`);
  const file = Buffer.from(await Bun.file(join(root, path)).arrayBuffer());
  // In the footer: TIMESTAMP with `isAdjustedToUTC` false, in nanoseconds.
  file[file.lastIndexOf(Buffer.from('121c3c00', 'hex'))] = 0x11;
  await Bun.write(join(root, path), file);
  const { cells, copied, warnings } = await bothWays(path);
  expect(cells).toEqual([['2026-01-31 23:59:59.123456+00', '1']]);
  expect(copied).toEqual(cells);
  expect(warnings).toEqual(['nanoseconds_dropped', 'nanoseconds_dropped']);
});
