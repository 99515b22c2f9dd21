import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cell, TargetColumn } from '../../server/connectors/contract/connector.ts';
import { fileDestination } from '../../server/connectors/file/destination.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { encodeCopyText } from '../../server/connectors/cells/copy-text.ts';
import { readRows } from './reading.ts';
import { s3Target, TWO } from './s3-target.ts';
import { limitHangs } from '../support/hangs.ts';
import { spread } from '../support/thorough.ts';
import { contextOf } from './places.ts';

limitHangs();

const root = mkdtempSync(join(tmpdir(), 'data-pipelines-parquet-out-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Sends rows as bytes that are cut at any position. */
async function piped(path: string, rows: Iterable<Cell[][]>, columns = TWO) {
  const context = contextOf(fileDestination, { filesRoot: root }, { settings: { path, format: 'parquet' } });
  const writer = await fileDestination.open(context as never, s3Target({ fence: 1, columns }));
  expect(writer.byteFormats).toEqual(['pgcopy-text']);
  let count = 0;
  async function* chunks() {
    let held: Uint8Array = new Uint8Array();
    for (const batch of rows) {
      count += batch.length;
      const bytes = encodeCopyText(batch, () => {});
      const cut = Math.floor(bytes.length / 3);
      yield Buffer.concat([held, bytes.subarray(0, cut)]);
      held = bytes.subarray(cut);
    }
    yield held;
  }
  try {
    await writer.pipe?.({ format: 'pgcopy-text', chunks: chunks(), rows: () => count });
    return await writer.finish(null);
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

const readBack = (path: string, names: string[]) =>
  readRows(fileSource, contextOf(fileSource, { filesRoot: root }, { settings: { path: `${path}/t/*` } }), names);

test.each([
  ['DECIMAL(5,2)', ['1.25', '-999.99'], '1.2345', '1.23'],
  ['FLOAT', ['0.1', '3.4028235e+38', 'NaN'], '0.123456789012', '0.12345679'],
  ['DOUBLE', ['0.1', '1.7976931348623157e+308', 'NaN'], '9007199254740993', '9007199254740992.0'],
])('a number with more digits than a %s of another file is refused or counted', async (type, right, wrong, nearest) => {
  const [id] = TWO;
  const columns = [
    id!,
    { name: 'amount', type: 'number' as const, source_type: type, dialect: 'duckdb', nullable: true },
  ];
  const write = async (cells: string[], inexact_values: 'refuse' | 'allow') => {
    const path = crypto.randomUUID();
    const context = contextOf(fileDestination, { filesRoot: root }, { settings: { path, format: 'parquet' } });
    const writer = await fileDestination.open(context as never, s3Target({ fence: 1, columns, inexact_values }));
    expect(writer.byteFormats).toEqual([]);
    try {
      await writer.write({ rows: cells.map((cell, at) => [String(at), cell]), bytes: 1 });
      await writer.finish(null);
    } finally {
      await writer.abort();
    }
    return (await readBack(path, ['amount'])).flat();
  };
  expect(await write(right, 'refuse')).toEqual(right);
  await expect(write([wrong], 'refuse')).rejects.toMatchObject({ code: 'value_does_not_fit' });
  expect(await write([wrong], 'allow')).toEqual([nearest]);
});

test('values written as bytes come back unchanged: escapes, NULL and the empty string, lines of any length', async () => {
  const texts: Cell[] = [
    '',
    null,
    '\\',
    '\\N',
    '\\t',
    '\\\\t\t',
    'a\tb\nc\r\n',
    '"q" \'s\'',
    'é 漢字 🦄',
    '\b\f\v',
    'NULL',
  ];
  const rows = texts.map((text, at): Cell[] => [String(at), text]);
  await piped('hard', [rows]);
  expect((await readBack('hard', ['id', 'text'])).toSorted((a, b) => Number(a[0]) - Number(b[0]))).toEqual(rows);
  const wide: Cell[][] = [
    ['1', `${'x'.repeat(3_000_000)}\\\n`],
    ['2', 'short'],
  ];
  await piped('wide', [wide]);
  expect(await readBack('wide', ['id', 'text'])).toEqual(wide);
});

test('years before 1 and beyond 9999, infinity and numbers of 39 digits come back unchanged', async () => {
  const typed = (name: string, type: TargetColumn['type'], source_type: string | null = null): TargetColumn => {
    return { name, type, source_type, dialect: null, nullable: true };
  };
  const columns = [
    typed('d', 'date'),
    typed('l', 'timestamp'),
    typed('z', 'timestamp_tz'),
    typed('h', 'number', 'HUGEINT'),
  ];
  const rows: Cell[][] = [
    [
      '0044-03-15 BC',
      '0044-03-15 12:00:00.5 BC',
      '0044-03-15 12:00:00.5+00 BC',
      '170141183460469231731687303715884105727',
    ],
    ['10000-01-01', '10000-01-01 00:00:00', '10000-01-01 00:00:00+00', '-9007199254740993'],
    ['-infinity', 'infinity', '-infinity', '0'],
  ];
  for (const path of ['eras-rows', 'eras-bytes']) {
    if (path === 'eras-bytes') await piped(path, [rows], columns);
    else {
      const context = contextOf(fileDestination, { filesRoot: root }, { settings: { path, format: 'parquet' } });
      const writer = await fileDestination.open(context as never, s3Target({ fence: 1, columns }));
      await writer.write({ rows, bytes: 100 });
      await writer.finish(null);
    }
    expect(await readBack(path, ['d', 'l', 'z', 'h'])).toEqual(rows);
  }
});

test('a long stream becomes several files, which one commit makes visible', async () => {
  const note = 'y'.repeat(1000);
  function* batches() {
    for (let batch = 0; batch < 80; batch += 1) {
      yield Array.from({ length: 1000 }, (_, at): Cell[] => [String(batch * 1000 + at), note]);
    }
  }
  const counts = await piped('long', batches());
  expect(counts.rows_loaded).toBe(80_000);
  expect(readdirSync(join(root, 'long/t')).toSorted()).toEqual(['run-1-00000.parquet', 'run-1-00001.parquet']);
  const ids = (await readBack('long', ['id'])).map(([id]) => Number(id));
  expect(new Set(ids).size).toBe(80_000);
  expect(readdirSync(root).filter((name) => name.startsWith('.'))).toEqual([]);
});

test.each(spread([4_000, 200_000, 1_500_000], 2))(
  'as bytes: rows of %d characters fit into the memory of the engine',
  async (width) => {
    const count = Math.ceil(80_000_000 / width);
    const text = (id: number) =>
      new Bun.MD5()
        .update(String(id))
        .digest('hex')
        .repeat(Math.ceil(width / 32));
    function* batches() {
      for (let id = 0; id < count; id += 1) yield [[String(id), text(id)]];
    }
    const path = `width-${width}`;
    expect(await piped(path, batches())).toMatchObject({ rows_loaded: count });
    const found = await readBack(path, ['id', 'text']);
    expect(found.filter(([id, cell]) => cell !== text(Number(id)))).toEqual([]);
    expect(new Set(found.map(([id]) => id)).size).toBe(count);
  },
);

test('a value that does not fit is a DataError without a path of this machine, and nothing remains', async () => {
  const error = await piped('bad', [[['no number', 'x']]]).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'value_does_not_fit' });
  expect(String(error)).toContain('no number');
  expect(String(error)).not.toContain('/dev/');
  expect(readdirSync(join(root, 'bad/t'))).toEqual([]);
});

async function written(path: string, rows: Cell[][], columns = TWO) {
  const context = contextOf(fileDestination, { filesRoot: root }, { settings: { path, format: 'parquet' } });
  const writer = await fileDestination.open(context as never, s3Target({ fence: 1, columns }));
  try {
    await writer.write({ rows, bytes: 100 });
    return await writer.finish(null);
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

test.each([
  ['bytes', (path: string, rows: Cell[][], columns?: TargetColumn[]) => piped(path, [rows], columns)],
  ['rows', written],
])(
  'as %s: hexadecimal digits that are none and values of 100 MB are refused, and nothing remains',
  async (lane, write) => {
    const columns = TWO.map((one) => (one.name === 'text' ? { ...one, type: 'binary' as const } : one));
    await write(
      `hex-${lane}`,
      [
        ['1', '\\x00ff'],
        ['2', '\\x'],
        ['3', null],
      ],
      columns,
    );
    expect(await readBack(`hex-${lane}`, ['id', 'text'])).toEqual([
      ['1', '\\x00ff'],
      ['2', '\\x'],
      ['3', null],
    ]);
    for (const bad of ['\\xzz', '\\x0', 'plain']) {
      const failed = write(
        `bad-${lane}`,
        [
          ['1', '\\x00'],
          ['2', bad],
        ],
        columns,
      );
      await expect(failed).rejects.toMatchObject({ code: 'value_does_not_fit' });
    }
    const large = 'x'.repeat(100_000_000);
    await expect(write(`large-${lane}`, [['1', large]])).rejects.toMatchObject({
      code: 'value_does_not_fit',
      message: expect.stringContaining('Out of Memory'),
    });
    expect(readdirSync(join(root, `large-${lane}/t`))).toEqual([]);
  },
);

test('rows of several megabytes need no more memory than narrow ones and keep their order', async () => {
  const context = contextOf(
    fileDestination,
    { filesRoot: root },
    { settings: { path: 'megabytes', format: 'parquet' } },
  );
  const writer = await fileDestination.open(context as never, s3Target({ fence: 1, columns: TWO }));
  // More than the engine's memory limit, within the rows that DuckDB would read at once.
  const wide = (id: number) => `${id} ${'x'.repeat(5_000_000)}`;
  for (let id = 0; id < 60; id += 1) {
    await writer.write({ rows: [[String(id), wide(id)]], bytes: 5_000_000 });
  }
  await writer.write({ rows: [['60', null]], bytes: 2 });
  expect(await writer.finish(null)).toMatchObject({ rows_loaded: 61 });
  const found = await readBack(
    'megabytes',
    TWO.map(({ name }) => name),
  );
  expect(found.map(([id]) => id)).toEqual(Array.from({ length: 61 }, (_, id) => String(id)));
  expect(found[59]?.[1]).toBe(wide(59));
  expect(found[60]?.[1]).toBeNull();
});
