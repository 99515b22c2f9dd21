import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'bun:test';
import { decodeCopyText } from '../../server/connectors/cells/copy-text.ts';
import type { Cell } from '../../server/connectors/contract/connector.ts';
import { ConfigurationError, DataError } from '../../server/connectors/contract/errors.ts';
import { parseParameters } from '../../server/connectors/contract/parameters.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { limitHangs } from '../support/hangs.ts';
import { readFiles, type SourceTestContext } from './file-support.ts';
import { firstDifference, readBatches, requestOf } from './reading.ts';
import { errorOf } from './unreachable.ts';
import { contextOf } from './places.ts';

limitHangs();

const root = mkdtempSync(join(tmpdir(), 'data-pipelines-fixed-width-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const COLUMNS = ['id:1-4', 'name:8', 'amount:14-20', 'note:21-'];

function contextFor(text: string | Uint8Array, settings: object, name = 'rows.txt'): SourceTestContext {
  writeFileSync(join(root, name), text);
  const all = { path: name, format: 'fixed_width', fixed_width_columns: COLUMNS, ...settings };
  return contextOf(fileSource, { filesRoot: root }, { settings: all }) as SourceTestContext;
}

/** By cells and by bytes, which have to agree. */
async function rowsOf(text: string | Uint8Array, settings: object = {}) {
  const ctx = contextFor(text, settings);
  const cells = await outcomeOf(readFiles(ctx).then(({ rows }) => rows));
  const bytes = await outcomeOf(copiedRows(ctx));
  expect(bytes.error?.message).toBe(cells.error?.message);
  if (cells.error) throw cells.error;
  expect(firstDifference(bytes.rows, cells.rows)).toBeNull();
  return cells.rows;
}

const outcomeOf = (work: Promise<Cell[][]>): Promise<{ rows: Cell[][]; error: Error | null }> =>
  work.then(
    (rows) => ({ rows, error: null }),
    (error: Error) => ({ rows: [], error }),
  );

async function copiedRows(ctx: SourceTestContext): Promise<Cell[][]> {
  const [stream] = await fileSource.discover(ctx);
  const request = requestOf(stream!);
  expect(fileSource.byteFormats?.(request)).toEqual(['pgcopy-text']);
  const bytes = await fileSource.copy?.(ctx, request, 'pgcopy-text');
  const chunks = await Array.fromAsync(bytes!.chunks, (chunk) => chunk.slice());
  const rows = decodeCopyText(Buffer.concat(chunks).toString());
  expect(bytes!.rows()).toBe(rows.length);
  return rows;
}

const typesOf = async (ctx: SourceTestContext) =>
  (await fileSource.discover(ctx))[0]?.fields.map(({ path, type }) => `${path[0]} ${type}`);

test('columns are cut by position, trimmed, and typed as those of CSV', async () => {
  const lines = ['   1Zoë ☃      1.50 two words ', '  20          -0.25', ' 300Smith   x      7x'];
  const text = lines.join('\n');
  const ctx = contextFor(text, { allow_short_lines: true });
  expect(await typesOf(ctx)).toEqual(['id integer', 'name string', 'amount number', 'note string']);
  const wanted = [
    ['1', 'Zoë ☃', '1.50', 'two words'],
    ['20', null, '-0.25', null],
    ['300', 'Smith', '7', 'x'],
  ];
  for (const ends of [text, `${text}\n`, text.replaceAll('\n', '\r\n'), `\uFEFF${lines.join('\r\n')}\r\n`]) {
    expect(await rowsOf(ends, { allow_short_lines: true })).toEqual(wanted);
  }
  const typed = contextFor('00042026-01-31true 007\n00992026-02-28FALSE123\n', {
    fixed_width_columns: ['number:4', 'day:10', 'on:5', 'code:3'],
  });
  expect(await typesOf(typed)).toEqual(['number string', 'day date', 'on boolean', 'code string']);
  expect((await readFiles(typed)).rows[1]).toEqual(['0099', '2026-02-28', 'false', '123']);
});

test.each([
  ['both', ['a b', 'c', null]],
  ['start', ['a b  ', 'c ', null]],
  ['end', [' a b', '  c', null]],
  ['none', [' a b  ', '  c ', '   ']],
])('spaces are trimmed: %s', async (trim_spaces, row) => {
  const settings = { fixed_width_columns: ['one:6', 'two:4', 'three:3'], trim_spaces };
  expect(await rowsOf(' a b    c    \n', settings)).toEqual([row]);
});

test('columns can overlap, leave gaps and stand in any order, and characters are counted, not bytes', async () => {
  const settings = { fixed_width_columns: ['last:7-8', 'all:1-8', 'first:1-1'], null_value: 'NA' };
  expect(await rowsOf('🦄é--☃☃NA\nabcdefgh\n', settings)).toEqual([
    [null, '🦄é--☃☃NA', '🦄'],
    ['gh', 'abcdefgh', 'a'],
  ]);
});

test('a text of another encoding is read by its characters', async () => {
  const latin = Buffer.from('caf\xe91\nth\xe9 2\n', 'latin1');
  const settings = { fixed_width_columns: ['drink:4', 'rank:1'] };
  expect(await rowsOf(latin, { ...settings, encoding: 'windows-1252' })).toEqual([
    ['café', '1'],
    ['thé', '2'],
  ]);
  await expect(rowsOf(latin, settings)).rejects.toThrow('rows.txt, line 1: the text is not valid utf-8');
  const japanese = Buffer.from([0x93, 0xfa, 0x96, 0x7b, 0x31]);
  expect(await rowsOf(japanese, { fixed_width_columns: ['name:2', 'rank:1'], encoding: 'shift_jis' })).toEqual([
    ['日本', '1'],
  ]);
});

test('titles are skipped, empty lines too, and a file of titles alone has the columns', async () => {
  const settings = { skip_lines: 2, fixed_width_columns: ['id:2', 'name:3'] };
  expect(await rowsOf('Title\n-----\n 1one\n\n\r\n 2two\n', settings)).toEqual([
    ['1', 'one'],
    ['2', 'two'],
  ]);
  for (const text of ['', 'Title\n', 'Title\n-----\n']) {
    const ctx = contextFor(text, settings);
    expect(await typesOf(ctx)).toEqual(['id string', 'name string']);
    expect((await readFiles(ctx)).rows).toEqual([]);
  }
});

test.each([
  ['a short line', '12\n1\n', 'line 2: the line has 1 characters, and the column "b" needs 2'],
  ['a long line', '12\n\n12 3\n', 'line 3: the line has 4 characters, and the columns end at 2'],
])('%s is a DataError with its line', async (_, text, message) => {
  const error = await errorOf(rowsOf(text, { fixed_width_columns: ['a:1', 'b:1'] }));
  expect(error).toBeInstanceOf(DataError);
  expect(error.code).toBe('malformed_fixed_width');
  expect(error.message).toContain(`rows.txt, ${message}`);
});

test('spaces after the last column are no text, and short lines can be allowed', async () => {
  expect(await rowsOf('12  \n1\n', { fixed_width_columns: ['a:1', 'b:1'], allow_short_lines: true })).toEqual([
    ['1', '2'],
    ['1', null],
  ]);
});

test('a value of another type is named with its line, however many lines and chunks are before it', async () => {
  const lines = Array.from({ length: 120_000 }, (_, id) => `${String(id).padStart(8)}row\n`);
  const text = `Title\n\n${lines.join('')}`;
  const settings = { fixed_width_columns: ['id:8', 'name:3'], skip_lines: 1 };
  const whole = await rowsOf(text, settings);
  expect([whole.length, whole[0], whole.at(-1)]).toEqual([120_000, ['0', 'row'], ['119999', 'row']]);
  const error = await errorOf(rowsOf(`${text}  wrong row\n`, settings));
  expect(error).toBeInstanceOf(DataError);
  expect(error.message).toContain('rows.txt, line 120003, column "id": the value is not a valid integer');
  for (const [line, message] of [
    ['1', 'line 120003: the line has 1 characters, and the column "id" needs 8'],
    ['☃☃☃☃☃☃☃☃rowx', 'line 120003: the line has 12 characters, and the columns end at 11'],
  ]) {
    await expect(rowsOf(`${text}${line}\n`, settings)).rejects.toThrow(`rows.txt, ${message}`);
  }
});

test('what COPY text escapes, characters of any length, and a NUL are read the same by cells and by bytes', async () => {
  const settings = { fixed_width_columns: ['all:1-8', 'first:3', 'rest:9-'], trim_spaces: 'end' };
  const lines = ['a\\b\tc\rd  e', '🦄é☃ \\N   ☃', 'é', '        x', '\tN\\.'.padEnd(12), '🦄🦄🦄🦄🦄🦄🦄🦄🦄'];
  expect(await rowsOf(lines.join('\n'), { ...settings, allow_short_lines: true })).toHaveLength(lines.length);
  expect(await rowsOf(`\n\n${lines.join('\r\n')}\r\n\r\n`, { fixed_width_columns: ['all:1-'] })).toHaveLength(9);
  expect(await rowsOf('\uFEFF', { fixed_width_columns: ['all:1-'] })).toEqual([]);
  const ctx = contextFor('a\0b\n', { fixed_width_columns: ['all:1-'] });
  expect((await readFiles(ctx)).rows).toEqual([['a\0b']]);
  await expect(copiedRows(ctx)).rejects.toMatchObject({ code: 'value_does_not_fit' });
});

test('a read resumes after the rows that its state has, also of a compressed file found by its extension', async () => {
  const text = Array.from({ length: 12_000 }, (_, id) => `${String(id).padStart(6)}\n`).join('');
  const settings = { format: 'auto', fixed_width_columns: ['id:6'], path: 'rows.fwf.gz' };
  const ctx = contextFor(gzipSync(text), settings, 'rows.fwf.gz');
  const [stream] = await fileSource.discover(ctx);
  expect(stream?.name).toBe('rows');
  const batches = await readBatches(fileSource, ctx, requestOf(stream!, { sync_mode: 'incremental' }));
  const state = batches[0]?.state ?? null;
  expect(batches[0]?.rows.length).toBeLessThan(12_000);
  const rest = await readBatches(fileSource, ctx, requestOf(stream!, { sync_mode: 'incremental', state }));
  const rows = [batches[0]!, ...rest].flatMap((batch) => batch.rows.map(([id]) => id));
  expect(rows).toEqual(Array.from({ length: 12_000 }, (_, id) => String(id)));
});

test('columns that are missing or malformed are refused with the reason', async () => {
  const problem = (fixed_width_columns?: string[]) => {
    const parsed = parseParameters(fileSource, { path: 'x', format: 'fixed_width', fixed_width_columns });
    const problems = 'problems' in parsed ? parsed.problems : [];
    return problems.map(({ parameter, code, message }) => [parameter, code, message]);
  };
  const name = 'fixed_width_columns';
  expect(problem()).toEqual([[name, 'missing_parameter', `Parameter "${name}" is required`]]);
  for (const [entries, message] of [
    [['id'], '"id" is not a column'],
    [[':4'], '":4" is not a column'],
    [['id:0-3'], 'the first character of a line is 1'],
    [['id:5-4'], 'the column has no characters'],
    [['id:0'], 'the column has no characters'],
    [['id:3-', 'x:2'], '"x:2" follows a column that ends with the line'],
    [['id:3', 'id:2'], 'Two columns are named "id"'],
  ] as const) {
    expect(problem([...entries])).toEqual([[name, 'invalid_parameter', expect.stringContaining(message)]]);
  }
  expect(problem(['a:b:3', 'c:7-'])).toEqual([]);
  const bare = { format: 'auto', path: 'x.fwf', fixed_width_columns: [] };
  const unknown = await errorOf(readFiles(contextFor('1\n', bare, 'x.fwf')));
  expect(unknown).toBeInstanceOf(ConfigurationError);
  expect(unknown.code).toBe('columns_missing');
});
