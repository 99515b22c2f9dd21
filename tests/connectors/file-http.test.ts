import { afterAll, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
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
