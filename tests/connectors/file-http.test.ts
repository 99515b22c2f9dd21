import { afterAll, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { strToU8, type Zippable, zipSync } from 'fflate';
import {
  AuthenticationError,
  ConfigurationError,
  DataError,
  RateLimitedError,
  RetryableError,
  TimeoutError,
} from '../../server/connectors/contract/errors.ts';
import { parseParameters } from '../../server/connectors/contract/parameters.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { type Manners, startHttpFiles } from '../support/http-files.ts';
import { parquetBytes } from './file-places.ts';
import { readFiles, remoteContext } from './file-support.ts';

const server = await startHttpFiles();
afterAll(() => server.close());

const ROWS = 40_000;
const CSV = ['id,name', ...Array.from({ length: ROWS }, (_, id) => `${id},"Zoë ☃ ${id}"`), ''].join('\n');
const settingsOf = (...names: string[]) => ({ location: 'http', urls: names.map(server.url) });

function put(name: string, body: string | Uint8Array<ArrayBuffer>, manners?: Manners): string {
  server.put(name, body, manners);
  return name;
}

async function failureOf(settings: object): Promise<unknown> {
  const { ctx, cleanUp } = remoteContext(settings);
  try {
    return await readFiles(ctx).then(
      () => null,
      (error: unknown) => error,
    );
  } finally {
    cleanUp();
  }
}

for (const [what, manners] of [
  ['that takes ranges', {}],
  ['that knows neither ranges nor HEAD', { ranges: false, head: false }],
  ['that packs what it sends', { headers: { 'content-encoding': 'gzip' }, ranges: false }],
] as [string, Manners][]) {
  test(`a file of a server ${what} is read completely`, async () => {
    const body = manners.headers ? gzipSync(CSV) : CSV;
    const { ctx, recorded, cleanUp } = remoteContext(
      settingsOf(put(`${what}.csv`.replaceAll(' ', '-'), body, manners)),
    );
    const { rows } = await readFiles(ctx);
    expect(rows).toHaveLength(ROWS);
    expect(rows[ROWS - 1]).toEqual([String(ROWS - 1), `Zoë ☃ ${ROWS - 1}`]);
    expect(recorded.filter(({ request }) => request.method === 'GET').length).toBeGreaterThanOrEqual(2);
    cleanUp();
  });
}

test('a read resumes after a lost connection if the file is the same', async () => {
  const name = put('broken.csv', CSV, { breakAfter: [1e9, 300_000, 300_000] });
  const { ctx, cleanUp } = remoteContext(settingsOf(name));
  expect((await readFiles(ctx)).rows).toHaveLength(ROWS);
  const resumed = server.seen.filter((one) => one.name === name && one.range !== null);
  expect(resumed.map(({ range }) => range)).toEqual(['bytes=300000-', 'bytes=600000-']);
  cleanUp();
});

test('without ranges a lost connection is a retryable error', async () => {
  const name = put('cut.csv', CSV, { breakAfter: [1e9, 300_000], ranges: false });
  expect(await failureOf(settingsOf(name))).toBeInstanceOf(RetryableError);
});

test('a file that is replaced while it is read is a retryable error', async () => {
  const { ctx, cleanUp } = remoteContext(settingsOf(put('moving.csv', CSV)));
  const [stream] = await fileSource.discover(ctx);
  const read = fileSource.read(ctx, {
    stream: stream!,
    columns: stream!.fields.map((field) => ({ field, masking: 'none' as const })),
    filters: [],
    sync_mode: 'full_refresh',
    cursor_field: null,
    primary_key: [],
    state: null,
    window: null,
  });
  put('moving.csv', CSV, { breakAfter: [200_000, 200_000, 200_000] });
  // The listing sees this version; the next one appears when the read resumes.
  let replaced = false;
  const drained = (async () => {
    for await (const batch of read) {
      if (!replaced && batch.rows.length > 0) put('moving.csv', `${CSV}0,last\n`);
      replaced = true;
    }
  })();
  await expect(drained).rejects.toMatchObject({ code: 'file_changed' });
  cleanUp();
});

test('redirects are followed, and credentials are sent to the original origin only', async () => {
  const other = await startHttpFiles();
  other.put('real.csv', CSV);
  put('moved.csv', '', {
    status: 302,
    headers: { location: other.url('real.csv') },
    authorization: 'Bearer sesame-1234',
  });
  const settings = { ...settingsOf('moved.csv'), authentication: 'bearer', token: 'sesame-1234' };
  const { ctx, cleanUp } = remoteContext({ ...settings, stream_name: other.url('') });
  expect((await readFiles(ctx)).rows).toHaveLength(ROWS);
  expect(other.seen.every(({ authorization }) => authorization === null)).toBeTrue();
  cleanUp();
  // The target of the redirect must not be called directly, either.
  const guarded = remoteContext(settings);
  await expect(readFiles(guarded.ctx)).rejects.toMatchObject({ code: 'address_not_allowed' });
  guarded.cleanUp();
  await other.close();
});

test('every failure has its own class and code', async () => {
  const held = Promise.withResolvers<void>();
  const stall = put('slow.csv', CSV, { hold: held.promise });
  const cases: [object, new (...given: never[]) => Error, string][] = [
    [settingsOf('none.csv'), ConfigurationError, 'not_found'],
    [settingsOf(put('locked.csv', CSV, { authorization: 'Bearer x' })), AuthenticationError, 'unauthorized'],
    [settingsOf(put('forbidden.csv', CSV, { status: 403 })), AuthenticationError, 'forbidden'],
    [settingsOf(put('down.csv', CSV, { status: 503 })), RetryableError, 'server_error'],
    [
      settingsOf(put('busy.csv', CSV, { status: 429, headers: { 'retry-after': '7' } })),
      RateLimitedError,
      'rate_limited',
    ],
    [
      settingsOf(put('round.csv', '', { status: 302, headers: { location: '/round.csv' } })),
      ConfigurationError,
      'redirect_refused',
    ],
    [{ location: 'http', urls: ['http://127.0.0.1:1/a.csv'] }, RetryableError, 'connection_failed'],
    [{ ...settingsOf(stall), timeout_seconds: 0.2 }, TimeoutError, 'request_timeout'],
    [settingsOf(put('bad.csv', 'a,b\n1,2\n"x"y,3\n')), DataError, 'malformed_csv'],
    [settingsOf(put('bad.csv.gz', gzipSync(CSV).subarray(0, 5000))), DataError, 'invalid_gzip'],
    [settingsOf(put('bad.parquet', 'no Parquet at all, whatever its name')), DataError, 'malformed_parquet'],
  ];
  for (const [settings, kind, code] of cases) {
    const error = await failureOf(settings);
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ code });
  }
  held.resolve();
  const { message } = (await failureOf(settingsOf('bad.csv'))) as Error;
  expect(message).toContain('/bad.csv, line 3');
  const parquet = (await failureOf(settingsOf('bad.parquet'))) as Error;
  expect(parquet.message).not.toContain('SELECT');
});

test('discovery reads only the footer of a Parquet file if the server supports ranges, and its copy is unlinked', async () => {
  const bytes = await parquetBytes(20_000);
  const { ctx, filesRoot, cleanUp } = remoteContext(settingsOf(put('big.parquet', bytes)));
  const [stream] = await fileSource.discover(ctx);
  expect(stream?.fields.map(({ type }) => type)).toEqual(['integer', 'string', 'number']);
  const asked = server.seen.filter((one) => one.name === 'big.parquet' && one.method === 'GET');
  expect(asked).toHaveLength(2);
  expect(asked.every(({ range }) => range !== null)).toBeTrue();
  for await (const batch of fileSource.read(ctx, { ...(await requestFor(ctx)) })) {
    expect(batch.rows.length).toBeGreaterThan(0);
    expect(readdirSync(filesRoot)).toEqual([]);
    break;
  }
  const plain = remoteContext(settingsOf(put('plain.parquet', bytes, { ranges: false })));
  expect((await readFiles(plain.ctx)).rows).toHaveLength(20_000);
  plain.cleanUp();
  cleanUp();
});

async function requestFor(ctx: Parameters<typeof readFiles>[0]) {
  const [stream] = await fileSource.discover(ctx);
  const columns = stream!.fields.map((field) => ({ field, masking: 'none' as const }));
  const rest = { filters: [], cursor_field: null, primary_key: [], state: null, window: null };
  return { stream: stream!, columns, sync_mode: 'full_refresh' as const, ...rest };
}

const zipOf = (files: Zippable) => new Uint8Array(zipSync(files));
const csvOf = (rows: [number, number]) => strToU8(['id', ...range(...rows), ''].join('\n'));
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => String(from + at));

test('zstd: all frames are read, and half a file is refused', async () => {
  const frames = [zstdCompressSync(CSV.slice(0, 700_000)), zstdCompressSync(CSV.slice(700_000))];
  const whole = new Uint8Array(Buffer.concat([frames[0]!, Buffer.from('502a4d1804000000abcdefff', 'hex'), frames[1]!]));
  const { ctx, cleanUp } = remoteContext(settingsOf(put('a.csv.zst', whole)));
  const { rows } = await readFiles(ctx);
  expect([rows.length, rows.at(-1)?.[1]]).toEqual([ROWS, `Zoë ☃ ${ROWS - 1}`]);
  cleanUp();
  // The end of the first frame alone is not recognizable as an end: it is a whole file.
  const broken = {
    'in the middle': whole.subarray(0, 9_000),
    'at the end': whole.subarray(0, -3),
    empty: new Uint8Array(0),
  };
  for (const bytes of [...Object.values(broken), new TextEncoder().encode(CSV)]) {
    const error = await failureOf(settingsOf(put('broken.csv.zst', bytes)));
    expect(error).toBeInstanceOf(DataError);
    expect(error).toMatchObject({ code: 'invalid_zstd', message: expect.stringContaining('/broken.csv.zst:') });
  }
});

test('a ZIP archive is read file by file, in parts if the server supports ranges', async () => {
  const bytes = zipOf({
    'an/one.csv': csvOf([0, 20_000]),
    'in/two.csv.gz': [new Uint8Array(gzipSync(csvOf([20_000, 20_010]))), { level: 0 }],
    '__MACOSX/one.csv': strToU8('no data'),
    'in/.DS_Store': strToU8('no data'),
  });
  for (const [manners, ranges] of [
    [{}, true],
    [{ ranges: false }, false],
  ] as const) {
    server.seen.length = 0;
    const settings = { ...settingsOf(put('all.zip', bytes, manners)), include_file_columns: true };
    const { ctx, filesRoot, cleanUp } = remoteContext(settings);
    const { rows, state } = await readFiles(ctx, { sync_mode: 'incremental' });
    expect(rows.map(([id]) => id)).toEqual(range(0, 20_010));
    expect(rows.at(-1)?.[1]).toEndWith('/all.zip/in/two.csv.gz');
    const gets = server.seen.filter(({ method }) => method === 'GET');
    expect(new Set(gets.map(({ range: asked }) => asked !== null))).toEqual(new Set([ranges]));
    expect((await readFiles(ctx, { sync_mode: 'incremental', state })).rows).toEqual([]);
    expect(readdirSync(filesRoot)).toEqual([]);
    cleanUp();
  }
  const one = remoteContext({ ...settingsOf('all.zip'), archive_members: 'in/*.gz' });
  expect((await readFiles(one.ctx)).rows).toHaveLength(10);
  one.cleanUp();
});

test('a broken archive is refused with the file in it', async () => {
  const good = zipOf({ 'a.csv': [csvOf([0, 50]), { level: 0 }] });
  const flipped = good.map((byte, at) => (at === 60 ? byte ^ 1 : byte));
  const encrypted = zipOf({ 'a.csv': csvOf([0, 50]) });
  // The flag of encryption, in the directory at the end.
  encrypted[Buffer.from(encrypted).indexOf('PK\u0001\u0002') + 8]! |= 1;
  const cases: [string, Uint8Array<ArrayBuffer>, object, string, string][] = [
    ['half.zip', good.subarray(0, 100), {}, 'invalid_zip', 'half.zip: '],
    ['flipped.zip', flipped, {}, 'invalid_zip', 'flipped.zip/a.csv: '],
    ['secret.zip', encrypted, {}, 'archive_encrypted', 'secret.zip/a.csv is encrypted'],
    ['none.zip', good, { archive_members: '*.json' }, 'no_files', 'none.zip has no file that matches "*.json"'],
    ['unknown.zip', zipOf({ 'a.doc': csvOf([0, 1]) }), {}, 'format_unknown', 'unknown.zip/a.doc'],
  ];
  for (const [name, bytes, settings, code, message] of cases) {
    const error = await failureOf({ ...settingsOf(put(name, bytes)), ...settings });
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
  }
});

test('incremental reads return changed files and need a modification time', async () => {
  put('one.csv', 'id\n1\n');
  put('two.csv', 'id\n2\n');
  const { ctx, cleanUp } = remoteContext(settingsOf('one.csv', 'two.csv'));
  const first = await readFiles(ctx, { sync_mode: 'incremental' });
  expect(first.rows).toEqual([['1'], ['2']]);
  expect((await readFiles(ctx, { sync_mode: 'incremental', state: first.state })).rows).toEqual([]);
  put('one.csv', 'id\n3\n');
  expect((await readFiles(ctx, { sync_mode: 'incremental', state: first.state })).rows).toEqual([['3']]);
  cleanUp();
  const timeless = remoteContext(settingsOf(put('timeless.csv', 'id\n1\n', { modified: false })));
  await expect(readFiles(timeless.ctx, { sync_mode: 'incremental' })).rejects.toMatchObject({
    code: 'no_modified_time',
  });
  expect((await readFiles(timeless.ctx)).rows).toEqual([['1']]);
  timeless.cleanUp();
});

test('missing settings of a location are reported, and settings without a location still work', () => {
  const problems = (settings: object) => {
    const parsed = parseParameters(fileSource, settings);
    return 'problems' in parsed ? parsed.problems.map(({ parameter, code }) => `${parameter} ${code}`) : [];
  };
  expect(problems({ path: 'a.csv' })).toEqual([]);
  expect(problems({})).toEqual(['path missing_parameter']);
  expect(problems({ location: 'http' })).toEqual(['urls missing_parameter']);
  expect(problems({ location: 'http', urls: ['ftp://x/a'] })).toEqual(['urls invalid_parameter']);
  expect(problems({ location: 'http', urls: ['http://x/a'], authentication: 'bearer' })).toEqual([
    'token missing_parameter',
  ]);
  const s3 = ['path', 'bucket', 'access_key_id', 'secret_access_key'].map((name) => `${name} missing_parameter`);
  expect(problems({ location: 's3' })).toEqual(s3);
});
