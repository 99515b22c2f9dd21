import { afterAll, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, gzipSync, zstdCompressSync } from 'node:zlib';
import avro from 'avsc';
import { strToU8, zipSync } from 'fflate';
import { compress as snappy } from 'snappyjs';
import type { Batch, ConnectorContext, StreamSchema, StreamState } from '../../server/connectors/contract/connector.ts';
import {
  ConfigurationError,
  DataError,
  RetryableError,
  SchemaChangedError,
} from '../../server/connectors/contract/errors.ts';
import { FileSourceConfig } from '../../server/connectors/kits/files/settings/files.ts';
import { fileError } from '../../server/connectors/kits/files/stores/local-files.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { decodeCopyText } from '../../server/connectors/cells/copy-text.ts';
import { readBatches, requestOf } from './reading.ts';

const root = mkdtempSync(join(tmpdir(), 'data-pipelines-file-test-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const warnings: string[] = [];
function contextOf(settings: object): ConnectorContext<FileSourceConfig> {
  return {
    config: FileSourceConfig.parse(settings),
    signal: new AbortController().signal,
    filesRoot: root,
    warn: (_code: string, message: string) => warnings.push(message),
  } as never;
}

function put(name: string, content: string | Uint8Array, changed = new Date()): string {
  mkdirSync(join(root, name, '..'), { recursive: true });
  writeFileSync(join(root, name), content);
  utimesSync(join(root, name), changed, changed);
  return name;
}

async function typesOf(path: string) {
  const [stream] = await fileSource.discover(contextOf({ path }));
  return Object.fromEntries(stream?.fields.map((field) => [field.path[0], field.type]) ?? []);
}

async function rowsOf(settings: object) {
  const context = contextOf(settings);
  const [stream] = await fileSource.discover(context);
  if (!stream) throw new Error('no stream');
  return (await readBatches(fileSource, context, requestOf(stream))).flatMap(({ rows }) => rows);
}

/** The same file by the byte lane, with COPY's escapes decoded. */
async function copiedRowsOf(settings: object) {
  const context = contextOf(settings);
  const [stream] = await fileSource.discover(context);
  if (!stream) throw new Error('no stream');
  expect(fileSource.byteFormats?.(requestOf(stream))).toEqual(['pgcopy-text']);
  const bytes = await fileSource.copy?.(context, requestOf(stream), 'pgcopy-text');
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes?.chunks ?? []) {
    // No chunk is a view of a much larger buffer.
    expect(chunk.buffer.byteLength).toBeLessThanOrEqual(1.1 * chunk.length);
    chunks.push(chunk);
  }
  const rows = decodeCopyText(Buffer.concat(chunks).toString());
  expect(bytes?.rows()).toBe(rows.length);
  return rows;
}

test('a column of a CSV file gets the narrowest type that loses nothing', async () => {
  const columns: Record<string, [string, string[]]> = {
    whole: ['integer', ['0', '-7', '9223372036854775807']],
    too_big: ['number', ['1', '9223372036854775808']],
    digits: ['number', ['12345678901234567890.00000000001', '-0.5']],
    zeros: ['string', ['007', '8']],
    plus: ['string', ['+1', '2']],
    minus_zero: ['string', ['-0', '2']],
    infinite: ['string', ['1e400', '2']],
    exponent: ['number', ['1.5e-7', '2']],
    truth: ['boolean', ['true', 'FALSE']],
    letters: ['string', ['t', 'f']],
    day: ['date', ['2024-02-29', '2026-12-31']],
    no_day: ['string', ['2023-02-29', '2026-12-31']],
    local: ['timestamp', ['2026-01-31 23:59', '2026-01-31T23:59:59.123456']],
    instant: ['timestamp_tz', ['2026-01-31T23:59:59Z', '2026-01-31 23:59:59.123456+05:30']],
    nanos: ['string', ['2026-01-31T23:59:59.1234567Z', '2026-01-31T23:59:59Z']],
    mixed: ['string', ['1', 'x']],
    nothing: ['string', ['', '']],
  };
  const values = Object.values(columns).map(([, texts]) => texts);
  const lines = [0, 1, 2].map((at) => values.map((texts) => texts[at] ?? '').join(','));
  put('types.csv', [Object.keys(columns).join(','), ...lines, ''].join('\n'));
  const expected = Object.fromEntries(Object.entries(columns).map(([name, [type]]) => [name, type]));
  expect(await typesOf('types.csv')).toEqual(expected as never);
  const [first, second] = await rowsOf({ path: 'types.csv' });
  const at = (name: string) => Object.keys(columns).indexOf(name);
  expect(first?.[at('instant')]).toBe('2026-01-31 23:59:59+00');
  expect(second?.[at('instant')]).toBe('2026-01-31 18:29:59.123456+00');
  expect(first?.[at('local')]).toBe('2026-01-31 23:59:00');
  expect(second?.[at('truth')]).toBe('false');
});

const HARD = [
  'id,text,amount,at,on',
  '1,plain,1.50,2026-01-31 23:59:59Z,true',
  '2,"quoted, ""twice""",-0.25,2026-01-31T23:59:59.5+00,FALSE',
  '3,"two\nlines\r\n\\and\\ tab\t",,,',
  '4,"",1,2026-01-31 00:00:00+02:00,true',
  '',
  '5,back\\slash 🦄 é,12345678901234567890,2024-02-29 00:00:00Z,True',
  '6,5" disk,0.5,,',
].join('\n');

for (const [what, text] of [
  ['line feeds', HARD],
  ['a last line feed', `${HARD}\n`],
  ['carriage returns', `${HARD.replaceAll('\n', '\r\n')}\r\n`],
  ['carriage returns, but not at the end', HARD.replaceAll('\n', '\r\n')],
  ['a byte order mark', `\uFEFF${HARD}`],
] as const) {
  test(`CSV with ${what} is read the same by cells and by bytes`, async () => {
    const path = put(`hard/${what}.csv`, text);
    const rows = await rowsOf({ path });
    expect(rows.map((row) => row[0] ?? null)).toEqual(['1', '2', '3', '4', '5', '6']);
    const lineEnd = text.includes('\r\n1') || text.includes('\r\n2') ? '\r\n' : '\n';
    const inner = `two${lineEnd}lines${lineEnd === '\n' ? '\r\n' : '\r\r\n'}\\and\\ tab\t`;
    const texts = ['plain', 'quoted, "twice"', inner, '', 'back\\slash 🦄 é', '5" disk'];
    expect(rows.map((row) => row[1] ?? null)).toEqual(texts);
    expect(rows[2]?.slice(2)).toEqual([null, null, null]);
    const copied = await copiedRowsOf({ path });
    // PostgreSQL parses times and booleans itself: they are copied as in the file.
    expect(copied.map((row) => row.slice(0, 3))).toEqual(rows.map((row) => row.slice(0, 3)));
  });
}

test.each([
  ['CR', 'a,b\r1,x\r2,"y\rz"\r'],
  ['CR, but not at the end', 'a,b\r1,x\r2,"y\rz"'],
  ['LF for the header, CRLF for the rows', 'a,b\n1,x\r\n2,"y\rz"\r\n'],
  ['CRLF for the header, LF for the rows', 'a,b\r\n1,x\n2,"y\rz"\n'],
  ['each kind once', 'a,b\r\n1,x\r2,"y\rz"\n'],
  ['CR and blank lines', '\ra,b\r\r1,x\r\r2,"y\rz"\r\r'.slice(1)],
])('CSV whose lines end in %s is read by cells and by bytes', async (what, text) => {
  const path = put(`ends/${what}.csv`, text);
  const wanted = [
    ['1', 'x'],
    ['2', 'y\rz'],
  ];
  expect(await rowsOf({ path })).toEqual(wanted);
  expect(await copiedRowsOf({ path })).toEqual(wanted);
});

test('a text of another encoding is refused with its line, by cells and by bytes', async () => {
  for (const name of ['wrong.csv', 'wrong.jsonl']) {
    const lines = name.endsWith('csv') ? ['a', 'fine', 'wr'] : ['{"a":"x"}', '{"a":"y"}', '{"a":"'];
    const path = put(name, Buffer.concat([Buffer.from(lines.join('\n')), Buffer.from([0xff, 10])]));
    await expect(rowsOf({ path })).rejects.toThrow(`${name}, line 3: the text is not valid utf-8`);
  }
});

test('CSV with a NUL in a name is refused with its place', async () => {
  const path = put('nul-name.csv', 'id,a\0b\n1,2\n');
  await expect(rowsOf({ path })).rejects.toThrow('nul-name.csv, line 1, column 2: the name contains the character NUL');
});

test('JSON Lines with a key twice are refused with their line, wherever the key is', async () => {
  const fine = '{"at":"10:00:00","url":"http://x/?a:b","o":{"a":1,"b":[{"a":2},{"a":3}]},"n":12345678901234567890}\n';
  expect(await rowsOf({ path: put('keys.jsonl', fine) })).toHaveLength(1);
  for (const [line, key] of [
    ['{"a":1,"b":2,"a":3}', 'a'],
    ['{"o":{"x":1,"x":1}}', 'x'],
    ['{"o":[{"\\"":":","y":1},{"y":1,"y":2}]}', 'y'],
  ]) {
    const path = put('twice.jsonl', `${fine}${line}\n`);
    await expect(rowsOf({ path })).rejects.toThrow(`twice.jsonl, line 2: an object has the key "${key}" twice`);
  }
});

test('records across chunk boundaries are complete, with and without gzip', async () => {
  const line = (index: number) => `${index},"${'é🦄,""'.repeat(index % 300)}",${index}.25`;
  const text = ['id,text,amount', ...Array.from({ length: 9000 }, (_, index) => line(index))].join('\n');
  expect(text.length).toBeGreaterThan(3_000_000);
  for (const path of [put('long.csv', text), put('long.csv.gz', gzipSync(text))]) {
    const rows = await rowsOf({ path });
    expect(rows).toHaveLength(9000);
    expect(rows[8999]).toEqual(['8999', 'é🦄,"'.repeat(8999 % 300), '8999.25']);
    expect(await copiedRowsOf({ path })).toEqual(rows);
  }
});

const MALFORMED: [what: string, body: string, message: string][] = [
  ['text after a quote', '1,2\n2,"x"y\n', 'line 3, column 2'],
  ['a missing cell', '1,2\n2\n', 'line 3, column 2'],
  ['a cell too many', '1,2\n2,3,4\n', 'line 3, column 3'],
  ['a quote left open', '1,2\n2,"x\n', 'line 3'],
];
for (const [what, body, message] of MALFORMED) {
  test(`${what} is a DataError that names file and place, by cells and by bytes`, async () => {
    const path = put('malformed.csv', `a,b\n${body}`);
    for (const read of [rowsOf, copiedRowsOf]) {
      const error = await read({ path }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(DataError);
      expect(String(error)).toContain(`malformed.csv, ${message}`);
    }
  });
}

test('a value that does not fit the type of its sample is a DataError that names file, line and column', async () => {
  const good = Array.from({ length: 12_000 }, (_, index) => `${index},2026-01-31 00:00:00Z`).join('\n');
  for (const wrong of ['007,2026-01-31 00:00:00Z', '1,2026-02-30 00:00:00Z']) {
    const path = put('late.csv', `id,at\n${good}\n${wrong}\n`);
    for (const read of [rowsOf, copiedRowsOf]) {
      const error = await read({ path }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(DataError);
      expect(String(error)).toMatch(/late\.csv, line 12002, column "(id|at)"/);
    }
  }
});

test('text that is not UTF-8 is a DataError', async () => {
  const path = put('latin.csv', Buffer.from('a,b\n1,caf\xe9\n', 'latin1'));
  expect(await rowsOf({ path }).catch((reason: unknown) => reason)).toBeInstanceOf(DataError);
  expect(await rowsOf({ path, encoding: 'windows-1252' })).toEqual([['1', 'café']]);
});

test('rows that span many chunks are read the same by cells, by bytes and as JSON Lines', async () => {
  // One text with line ends in every chunk, one without any, and short texts around them.
  const lines = 'a "quoted", line\n'.repeat(200_000);
  const bare = '0123456789abcdef'.repeat(250_000);
  const notes = ['first', lines, 'between', bare, lines.repeat(2), bare, 'last'];
  const quoted = notes.map((note, id) => `${id},"${note.replaceAll('"', '""')}"\n`);
  put('wide.csv', `id,note\n${quoted.join('')}`);
  put('wide.jsonl', notes.map((note, id) => `${JSON.stringify({ id, note })}\n`).join(''));
  const hash = (rows: (string | null)[][]) => rows.map(([id, note]) => [id, Bun.hash(note ?? '')]);
  const expected = notes.map((note, id) => [String(id), Bun.hash(note)]);
  expect(hash(await rowsOf({ path: 'wide.csv' }))).toEqual(expected);
  expect(hash(await copiedRowsOf({ path: 'wide.csv' }))).toEqual(expected);
  expect(hash(await rowsOf({ path: 'wide.jsonl' }))).toEqual(expected);
});

test.each(['csv', 'jsonl'])('a record of more than 64 MB is a DataError: %s', async (format) => {
  const endless = '0123456789abcdef\n'.repeat(4_200_000);
  const record = format === 'csv' ? `1,"${endless}` : `{"id":1,"note":"${endless.replaceAll('\n', '')}`;
  put(`endless.${format}`, `${format === 'csv' ? 'id,note\n' : ''}${record}`);
  await expect(rowsOf({ path: `endless.${format}` })).rejects.toMatchObject({ code: 'record_too_long' });
});

const many = 9_000_000;
test.each([
  [
    'values.jsonl',
    `{"id":1}\n{"id":[${'0,'.repeat(many)}0]}\n`,
    'json_limit_exceeded',
    'values.jsonl, line 2: the record',
  ],
  ['depth.jsonl', `{"id":1}\n{"id":${'['.repeat(90_000)}`, 'json_limit_exceeded', 'depth.jsonl, line 2: the record'],
  ['fields.csv', `id,note\n1,2\n${','.repeat(many)}\n`, 'malformed_csv', 'fields.csv, line 3, column 100001: a record'],
])('a record of too many parts is a DataError that names its line: %s', async (path, text, code, message) => {
  put(path, text);
  await expect(rowsOf({ path })).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
});

test('discovery reads at most 32 MB of a file with wide rows', async () => {
  const wide = 'x'.repeat(1_000_000);
  const rows = Array.from({ length: 60 }, (_, id) => `${id < 50 ? id : 'no number'},${wide}\n`);
  put('sampled.csv', `id,note\n${rows.join('')}`);
  expect(await typesOf('sampled.csv')).toEqual({ id: 'integer', note: 'string' });
});

test('JSON Lines keep every digit, nested ones too, and the union of their keys', async () => {
  const path = put(
    'big.jsonl',
    '{"id": 12345678901234567890, "n": {"v": [0.1234567890123456789]}, "a": 1}\n{"id": 2, "a": 1.5, "b": true}\n\n{"a": null, "s": "x", "l": [1]}\n',
  );
  expect(await typesOf(path)).toEqual({ id: 'number', n: 'json', a: 'number', b: 'boolean', s: 'string', l: 'array' });
  expect(await rowsOf({ path })).toEqual([
    ['12345678901234567890', '{"v":[0.1234567890123456789]}', '1', null, null, null],
    ['2', null, '1.5', 'true', null, null],
    [null, null, null, null, 'x', '[1]'],
  ]);
});

test('broken JSON is a DataError that names file, line and column', async () => {
  const path = put('broken.jsonl', '{"a": 1}\n{"a": [1, }\n');
  await expect(rowsOf({ path })).rejects.toThrow('broken.jsonl, line 2, column 11');
  await expect(rowsOf({ path: put('list.jsonl', '[1]\n') })).rejects.toThrow('list.jsonl, line 1, column 1');
});

test('truncated gzip data is a DataError', async () => {
  const whole = gzipSync(`a,b\n${'1,2\n'.repeat(100_000)}`);
  const path = put('cut.csv.gz', whole.subarray(0, whole.length - 50));
  expect(await rowsOf({ path }).catch((reason: unknown) => reason)).toBeInstanceOf(DataError);
});

test('no path leads out of the folder: not by .., not as an absolute path, not by a link', async () => {
  const outside = mkdtempSync(join(tmpdir(), 'data-pipelines-outside-'));
  writeFileSync(join(outside, 'secret.csv'), 'a\n1\n');
  mkdirSync(join(root, 'links'));
  symlinkSync(join(outside, 'secret.csv'), join(root, 'links/file.csv'));
  symlinkSync(outside, join(root, 'links/folder'));
  const paths = [`${outside}/secret.csv`, '../secret.csv', 'links/../../secret.csv', 'links/file.csv', 'links/*.csv'];
  for (const path of [...paths, 'links/folder/secret.csv', 'links/folder/*.csv', '**/*.csv']) {
    const error = await rowsOf({ path }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect((error as ConfigurationError).code).toBe('path_outside_root');
    expect(String(error)).not.toContain(root);
  }
  rmSync(outside, { recursive: true });
  rmSync(join(root, 'links'), { recursive: true });
});

test.skipIf(!existsSync('/dev/full'))('a full disk is an error to try again that says what to do', () => {
  let refused: unknown;
  try {
    writeFileSync('/dev/full', 'rows');
  } catch (error) {
    refused = fileError(error, 'orders');
  }
  expect(refused).toBeInstanceOf(RetryableError);
  expect(refused).toMatchObject({
    code: 'file_error',
    message: '"orders": no space left on device (ENOSPC). Free space on the disk of the files folder',
  });
});

test('an incremental read returns only new and changed files, including those with the same time', async () => {
  const context = contextOf({ path: 'inc/*.csv' });
  const at = (name: string, seconds: number) => utimesSync(join(root, name), seconds, seconds);
  at(put('inc/a.csv', 'id\n1\n'), 1000);
  at(put('inc/b.csv', 'id\n2\n'), 2000);
  const [stream] = await fileSource.discover(context);
  const read = async (state: never) => {
    const batches = await readBatches(
      fileSource,
      context,
      requestOf(stream as never, { sync_mode: 'incremental', state }),
    );
    return {
      ids: batches.flatMap(({ rows }) => rows.map(([id]) => id)),
      state: (batches.at(-1)?.state ?? state) as never,
    };
  };
  const first = await read(null as never);
  expect(first.ids).toEqual(['1', '2']);
  expect(await read(first.state)).toEqual({ ids: [], state: first.state });
  at(put('inc/c.csv', 'id\n3\n'), 2000);
  const second = await read(first.state);
  expect(second.ids).toEqual(['3']);
  at(put('inc/a.csv', 'id\n1\n4\n'), 3000);
  const third = await read(second.state);
  expect(third.ids).toEqual(['1', '4']);
  expect(readdirSync(join(root, 'inc')).toSorted()).toEqual(['a.csv', 'b.csv', 'c.csv']);
});

test('a file that appears after newer ones were read is still read, and nothing is read twice', async () => {
  const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 12, minute));
  const write = (name: string, minute: number) =>
    utimesSync(join(root, put(`late/${name}`, `id\n${name.slice(0, 1)}\n`)), at(0), at(minute));
  const context = contextOf({ path: 'late/*.csv' });
  const read = async (state: StreamState | null) => {
    const [stream] = await fileSource.discover(context);
    if (!stream) throw new Error('no stream');
    const batches = await readBatches(fileSource, context, requestOf(stream, { sync_mode: 'incremental', state }));
    const last = batches.findLast((batch) => batch.state)?.state ?? state;
    return { ids: batches.flatMap(({ rows }) => rows.map(([id]) => id)), state: JSON.parse(JSON.stringify(last)) };
  };
  write('1.csv', 0);
  write('2.csv', 55);
  const first = await read(null);
  expect(first.ids).toEqual(['1', '2']);
  // Written before the newest file, renamed into place after that was read.
  write('3.csv', 30);
  const second = await read(first.state);
  expect(second.ids).toEqual(['3']);
  expect((await read(second.state)).ids).toEqual([]);
  write('3.csv', 31);
  expect((await read(second.state)).ids).toEqual(['3']);
  // States of the first version, and those set by users, have only the cursor and its names.
  expect((await read({ cursor: '2026-01-01 12:55:00+00', names: ['late/2.csv'] })).ids).toEqual([]);
  expect((await read({ cursor: '2026-01-01 12:31:00+00' })).ids).toEqual(['3', '2']);
});

test('a file that changed within its modification time is read again, and an older copy of one is refused', async () => {
  const context = contextOf({ path: 'versions/*.csv' });
  const at = (day: number) => new Date(Date.UTC(2026, 0, day));
  const read = async (state: StreamState | null) => {
    const [stream] = await fileSource.discover(context);
    const batches = await readBatches(fileSource, context, requestOf(stream!, { sync_mode: 'incremental', state }));
    return { ids: batches.flatMap(({ rows }) => rows.map(([id]) => id)), state: batches.at(-1)?.state ?? state };
  };
  put('versions/1.csv', 'id\n1\n', at(2));
  const first = await read(null);
  put('versions/1.csv', 'id\n1\n2\n', at(2));
  const second = await read(first.state);
  expect(second.ids).toEqual(['1', '2']);
  expect((await read(second.state)).ids).toEqual([]);
  put('versions/1.csv', 'id\n1\n', at(1));
  await expect(read(second.state)).rejects.toMatchObject({
    code: 'source_went_back',
    message: expect.stringContaining(
      'as of 2026-01-02 00:00:00.000000+00, and is now as of 2026-01-01 00:00:00.000000+00',
    ),
  });
  expect((await read({ cursor: '2026-01-01' })).ids).toEqual(['1']);
});

test('a missing column is a SchemaChangedError, a new one a warning', async () => {
  const context = contextOf({ path: 'drift.csv' });
  put('drift.csv', 'a,b\n1,2\n');
  const [stream] = await fileSource.discover(context);
  put('drift.csv', 'a,c\n1,2\n');
  const error = await readBatches(fileSource, context, requestOf(stream as never)).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(SchemaChangedError);
  put('drift.csv', 'b,c,a\n2,3,1\n');
  warnings.length = 0;
  const [batch] = await readBatches(fileSource, context, requestOf(stream as never));
  expect(batch?.rows).toEqual([['1', '2']]);
  expect(warnings).toEqual([
    'drift.csv has columns that are not in the catalog: c. Their values are not loaded. To load them, refresh the schema and reset the cursor of the stream',
  ]);
});

test('a column of later files is NULL in earlier ones, unless it is part of the key or was removed', async () => {
  const context = contextOf({ path: 'grown/*.csv', primary_key: ['id'] });
  put('grown/1.csv', 'id,name\n1,a\n', new Date('2026-01-01'));
  put('grown/2.csv', 'extra,id,name\n8,2,b\n', new Date('2026-01-02'));
  const [stream] = await fileSource.discover(context);
  const read = (state: StreamState | null) =>
    readBatches(fileSource, context, requestOf(stream as never, { sync_mode: 'incremental', state }));
  const cells = (batches: Batch[]) => batches.flatMap(({ rows }) => rows);
  const first = await read(null);
  expect(cells(first)).toEqual([
    ['1', 'a', null],
    ['2', 'b', '8'],
  ]);
  expect(await copiedRowsOf({ path: 'grown/*.csv', primary_key: ['id'] })).toEqual(cells(first));
  const { state } = first.at(-1)!;
  put('grown/3.csv', 'id,name\n3,c\n', new Date('2026-01-03'));
  await expect(read(state!)).rejects.toMatchObject({ code: 'column_missing' });
  put('grown/4.csv', 'id,name,extra\n4,d,9\n', new Date('2026-01-04'));
  expect(cells(await read(state!))).toEqual([
    ['3', 'c', null],
    ['4', 'd', '9'],
  ]);
  put('grown/5.csv', 'name,extra\ne,9\n', new Date('2026-01-05'));
  await expect(read(state!)).rejects.toMatchObject({ code: 'column_missing' });
});

test('describe returns the columns of the next files and leaves broken files to the read', async () => {
  const context = contextOf({ path: 'told/*', primary_key: ['id'], format: 'jsonl' });
  put('told/1', '{"id":1}\n', new Date('2026-01-01'));
  const [stream] = (await fileSource.discover(context)) as [StreamSchema];
  const names = async (state: StreamState | null) =>
    (await fileSource.describe!(context, stream, state))!.fields.map(({ path, type }) => [path[0], type]);
  const batches = await readBatches(fileSource, context, requestOf(stream, { sync_mode: 'incremental' }));
  const { state } = batches.at(-1)!;
  put('told/2', '{"id":2,"extra":[1]}\n', new Date('2026-01-02'));
  put('told/3', 'no json', new Date('2026-01-03'));
  put('told/4', '{"id":"text","more":1.5}\n', new Date('2026-01-04'));
  expect(await names(null)).toEqual([['id', 'integer']]);
  expect(await names(state!)).toEqual([
    ['id', 'integer'],
    ['extra', 'array'],
    ['more', 'number'],
  ]);
});

/** A workbook as other programs than Excel write it: no relation of styles, texts in the cells. */
const workbookOf = (rows: string, more: Record<string, string> = {}) => {
  const relation = (type: string, target: string) =>
    `<Relationships xmlns="x"><Relationship Id="r1" Type="http://x/${type}" Target="${target}"/></Relationships>`;
  const parts: Record<string, string> = {
    '_rels/.rels': relation('officeDocument', '/book/w.xml'),
    'book/w.xml': '<x:workbook xmlns:x="x" xmlns:r="r"><x:sheets><x:sheet name="S" r:id="r1"/></x:sheets></x:workbook>',
    'book/_rels/w.xml.rels': relation('worksheet', 'sheets/one.xml'),
    'book/sheets/one.xml': `<x:worksheet xmlns:x="x"><x:sheetData>${rows}</x:sheetData></x:worksheet>`,
    ...more,
  };
  return zipSync(Object.fromEntries(Object.entries(parts).map(([name, text]) => [name, strToU8(text)])));
};
const textCell = (text: string) => `<x:c t="inlineStr"><x:is><x:t>${text}</x:t></x:is></x:c>`;
const numberCell = (text: string) => `<x:c><x:v>${text}</x:v></x:c>`;

test('a sheet is read by the types and formats of its cells, without empty rows', async () => {
  writeFileSync(join(root, 'values.xlsx'), await Bun.file(join(import.meta.dir, 'values.xlsx')).bytes());
  warnings.length = 0;
  for (const sheet of ['2', 'Ünits & "more"']) {
    const [stream] = await fileSource.discover(contextOf({ path: 'values.xlsx', sheet }));
    expect(stream?.fields.map(({ path, type }) => `${path[0]} ${type}`)).toEqual([
      'id integer',
      'name string',
      'amount number',
      'on boolean',
      'day date',
      'at timestamp',
      'time time',
      // A duration can have more than a day.
      'took number',
      'price number',
      'mixed string',
      'column_11 string',
    ]);
  }
  const none = [null, null, null, null, null, null, null, null];
  expect(await rowsOf({ path: 'values.xlsx', sheet: '2' })).toEqual([
    [
      '1',
      ' Zoë ☃ 😀\n2nd ',
      '0.1',
      'true',
      '2026-01-31',
      '2026-01-31 23:59:59.123',
      '13:05:00',
      '1.5',
      '12.5',
      '007',
      null,
    ],
    ['2', 'a bold end', '1.1', 'false', '1900-02-28', '1999-12-31 00:00:00', '00:00:00', '0.25', '-3', '42', 'beside'],
    ['3', '_x0041_ \x01', '1e+21', null, '9999-12-31', '2024-02-29 12:00:00', null, '0', '1e-7', 'true', null],
    ['4', null, null, ...none],
    ['5', 'merged', null, ...none],
  ]);
  const text = '3 cells hold a formula that failed or was never calculated, such as ="" in B8, and were read as NULL';
  expect(warnings).toEqual([`values.xlsx, sheet "Ünits & "more"": ${text}`]);
});

test('a formula without a stored result is NULL with a warning, its row is kept, and one of an empty text is no error', async () => {
  const cells = {
    uncalculated: '<x:c><x:f>SUM(B1:B2)</x:f><x:v></x:v></x:c>',
    shared: '<x:c><x:f t="shared" si="0"/></x:c>',
    empty: '<x:c t="str"><x:f>""</x:f><x:v></x:v></x:c>',
    known: '<x:c><x:f>1+1</x:f><x:v>2</x:v></x:c>',
  };
  const head = `<x:row>${textCell('a')}${textCell('b')}</x:row>`;
  const rows = [
    [cells.known, cells.empty],
    [cells.uncalculated, cells.shared],
  ];
  put('formulas.xlsx', workbookOf(head + rows.map((row) => `<x:row>${row.join('')}</x:row>`).join('')));
  warnings.length = 0;
  expect(await rowsOf({ path: 'formulas.xlsx' })).toEqual([
    ['2', null],
    [null, null],
  ]);
  expect(warnings).toEqual([
    'formulas.xlsx, sheet "S": 2 cells hold a formula that failed or was never calculated, such as =SUM(B1:B2) in A3, and were read as NULL',
  ]);
});

test('a sheet of another program is read, too, and what cannot be read is named with its cell', async () => {
  const head = `<x:row>${textCell('id')}${textCell('note')}</x:row>`;
  const rows = Array.from(
    { length: 12_000 },
    (_, id) => `<x:row>${numberCell(String(id))}${textCell('&lt;a&gt;')}</x:row>`,
  );
  put('other.xlsx', workbookOf(head + rows.join('')));
  const read = await rowsOf({ path: 'other.xlsx' });
  expect([read.length, read[11_999]]).toEqual([12_000, ['11999', '<a>']]);
  const late = `<x:row r="20000"><x:c r="A20000" t="str"><x:v>no number</x:v></x:c></x:row>`;
  put('late.xlsx', workbookOf(`${head}${rows.join('')}${late}`));
  put('open.xlsx', workbookOf(`${head}<x:row>${numberCell('1')}</x:cell>`));
  put('entity.xlsx', workbookOf(`<x:row>${textCell('&a;')}</x:row>`));
  put('number.xlsx', workbookOf(`${head}<x:row r="7"><x:c r="B7"><x:v>12x</x:v></x:c></x:row>`));
  put('no-sheet.xlsx', workbookOf(head, { 'book/_rels/w.xml.rels': '<Relationships/>' }));
  put('half.xlsx', workbookOf(head + rows.join('')).subarray(0, 3000));
  for (const [settings, code, message] of [
    [
      { path: 'late.xlsx' },
      'value_does_not_fit',
      'sheet "S", cell A20000, column "id": the value is not a valid integer',
    ],
    [{ path: 'open.xlsx' }, 'malformed_xlsx', '"book/sheets/one.xml"'],
    [{ path: 'entity.xlsx' }, 'malformed_xlsx', 'entity'],
    [{ path: 'number.xlsx' }, 'malformed_xlsx', 'sheet "S", cell B7: "12x" is not a number'],
    [{ path: 'no-sheet.xlsx' }, 'malformed_xlsx', 'is missing'],
    [{ path: 'half.xlsx' }, 'malformed_xlsx', 'half.xlsx is not a valid XLSX file: it is cut off'],
    [{ path: 'other.xlsx', sheet: 'T' }, 'sheet_not_found', 'other.xlsx has no sheet "T". Its sheets: "S"'],
  ] as const) {
    const error = await rowsOf(settings).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
  }
});

/** A container file as another library writes it. */
async function avroFile(schema: object, records: unknown[], codec: string): Promise<Buffer> {
  const codecs = {
    zstandard: (bytes: Buffer, done: (error: null, packed: Buffer) => void) => done(null, zstdCompressSync(bytes)),
    snappy(bytes: Buffer, done: (error: null, packed: Buffer) => void) {
      const checksum = Buffer.alloc(4);
      checksum.writeUInt32BE(crc32(bytes));
      done(null, Buffer.concat([snappy(bytes), checksum]));
    },
  };
  const encoder = new avro.streams.BlockEncoder(schema as never, {
    codec,
    codecs: { ...codecs, ...avro.streams.BlockEncoder.defaultCodecs() },
    blockSize: 2000,
  });
  const chunks: Buffer[] = [];
  encoder.on('data', (chunk: Buffer) => chunks.push(chunk));
  const ended = new Promise((resolve) => encoder.on('end', resolve));
  for (const record of records) encoder.write(record);
  encoder.end();
  await ended;
  return Buffer.concat(chunks);
}

const logical = (type: string, logicalType: string, more: object = {}) => ({ type, logicalType, ...more });
const EVENT = {
  type: 'record',
  name: 'shop.Event',
  fields: [
    { name: 'id', type: 'long' },
    { name: 'name', type: ['null', 'string'] },
    { name: 'ratio', type: 'double' },
    { name: 'single', type: 'float' },
    { name: 'on', type: 'boolean' },
    { name: 'raw', type: { type: 'fixed', name: 'Two', size: 2 } },
    { name: 'amount', type: logical('bytes', 'decimal', { precision: 20, scale: 3 }) },
    { name: 'day', type: logical('int', 'date') },
    { name: 'time', type: logical('long', 'time-micros') },
    { name: 'at', type: logical('long', 'timestamp-millis') },
    { name: 'local', type: ['null', logical('long', 'local-timestamp-micros')] },
    { name: 'kind', type: { type: 'enum', name: 'Kind', symbols: ['A', 'B'] } },
    { name: 'parent', type: ['null', 'Event'] },
    { name: 'tags', type: { type: 'map', values: { type: 'array', items: 'int' } } },
    { name: 'mixed', type: ['null', 'string', 'long'] },
  ],
};
const event = (id: number, more: object = {}) => ({
  id,
  name: 'Zoë ☃',
  ratio: 0.1,
  single: 0.1,
  on: true,
  raw: Buffer.from('abff', 'hex'),
  amount: Buffer.from('fefe', 'hex'),
  day: 20_484,
  time: 1_500_000,
  at: 1_769_904_000_123,
  local: null,
  kind: 'B',
  parent: null,
  tags: { a: [1, -2] },
  mixed: 7,
  ...more,
});

test('Avro: every codec and type is read exactly', async () => {
  const child = event(0, { name: null, mixed: 'x' });
  const records = [event(1, { parent: child, local: -1 })];
  for (let id = 2; id <= 1200; id++) records.push(event(id));
  for (const codec of ['null', 'deflate', 'snappy', 'zstandard']) {
    const path = put(`events-${codec}.avro`, await avroFile(EVENT, records, codec));
    const rows = await rowsOf({ path });
    expect(rows.map(([id]) => id)).toEqual(Array.from({ length: 1200 }, (_, at) => String(at + 1)));
    const before = ['2', 'Zoë ☃', '0.1', '0.1', 'true', '\\xabff', '-0.258', '2026-01-31', '00:00:01.5'];
    expect(rows[1]).toEqual([...before, '2026-02-01 00:00:00.123+00', null, 'B', null, '{"a":[1,-2]}', '7']);
    expect(rows[0]?.[10]).toBe('1969-12-31 23:59:59.999999');
    expect(JSON.parse(rows[0]?.[12] ?? '')).toMatchObject({
      id: 0,
      name: null,
      amount: -0.258,
      mixed: 'x',
      day: '2026-01-31',
    });
  }
  expect(Object.values(await typesOf('events-null.avro')).join(' ')).toBe(
    'integer string number number boolean binary number date time timestamp_tz timestamp string json json json',
  );
  // What a JavaScript number cannot hold.
  const longs = ['9223372036854775807', '-9223372036854775808', '-9007199254740993'];
  put('longs.avro', longFile(longs.map(BigInt)));
  expect(await rowsOf({ path: 'longs.avro' })).toEqual(longs.map((long) => [long]));
});

function longFile(longs: bigint[]): Buffer {
  const varint = (value: bigint) => {
    let left = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
    const bytes: number[] = [];
    for (; left > 127n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
    return Buffer.from([...bytes, Number(left)]);
  };
  const text = (value: string) => Buffer.concat([varint(BigInt(value.length)), Buffer.from(value)]);
  const [mark, body] = [Buffer.alloc(16, 7), Buffer.concat(longs.map(varint))];
  const meta = Buffer.concat([varint(1n), text('avro.schema'), text('"long"'), varint(0n)]);
  const block = Buffer.concat([varint(BigInt(longs.length)), varint(BigInt(body.length)), body]);
  return Buffer.concat([Buffer.from('Obj\x01'), meta, mark, block, mark]);
}

test('Avro: a broken file is refused with its record, and an unknown codec by name', async () => {
  const good = await avroFile(
    EVENT,
    Array.from({ length: 500 }, (_, id) => event(id)),
    'deflate',
  );
  const flipped = Buffer.from(good);
  flipped[good.length - 200]! ^= 0xff;
  const year = await avroFile(
    { type: 'record', name: 'R', fields: [{ name: 'at', type: logical('long', 'timestamp-millis') }] },
    [{ at: 0 }, { at: -9e15 }],
    'null',
  );
  const named = Buffer.from(longFile([1n]).toString('latin1').replace('"long"', '"lung"'), 'latin1');
  for (const [name, bytes, code, message] of [
    [
      'half.avro',
      good.subarray(0, good.length - 30),
      'malformed_avro',
      /half.avro is not a valid Avro file: it is cut off after \d+ records/,
    ],
    [
      'flipped.avro',
      flipped,
      'malformed_avro',
      /the block after record \d+ cannot be decompressed|is corrupt|record \d+/,
    ],
    ['none.avro', Buffer.from('id,name\n1,2\n'), 'malformed_avro', /it is cut off, or not an object container file/],
    ['schema.avro', named, 'malformed_avro', /the type "lung" is not defined/],
    ['year.avro', year, 'malformed_avro', /year.avro, record 2, column "at": a date is not between/],
  ] as const) {
    const error = await rowsOf({ path: put(name, bytes) }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
  }
});

test.each([
  ['utf-16be', Buffer.from('id,näme\n1,Zoë ☃\n', 'utf16le').swap16(), 'Zoë ☃'],
  ['windows-1251', Buffer.concat([Buffer.from('id,n\n1,'), Buffer.from([0xcc, 0xe8, 0xf0, 10])]), 'Мир'],
  ['shift_jis', Buffer.concat([Buffer.from('id,n\n1,'), Buffer.from([0x93, 0xfa, 0x96, 0x7b, 10])]), '日本'],
] as const)('text in %s is read, and an invalid byte is named with its line', async (encoding, bytes, text) => {
  expect((await rowsOf({ path: put(`${encoding}.csv`, bytes), encoding }))[0]?.[1]).toBe(text);
  const cut =
    encoding === 'utf-16be'
      ? bytes.subarray(0, -1)
      : Buffer.concat([bytes, Buffer.from('2,'), Buffer.from([0xff, 0xff])]);
  const error = await rowsOf({ path: put(`cut-${encoding}.csv`, cut), encoding }).catch((reason: unknown) => reason);
  if (encoding !== 'windows-1251')
    expect(error).toMatchObject({ code: 'invalid_encoding', message: expect.stringContaining(`.csv, line`) });
});
