import { afterAll, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Batch, ConnectorContext, StreamSchema, StreamState } from '../../server/connectors/contract/connector.ts';
import { ConfigurationError, DataError, SchemaChangedError } from '../../server/connectors/contract/errors.ts';
import { FileSourceConfig } from '../../server/connectors/kits/files/settings/files.ts';
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
    // No chunk is a view of a larger buffer.
    expect(chunk.buffer.byteLength).toBe(chunk.length);
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
