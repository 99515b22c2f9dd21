import { afterAll, expect, test } from 'bun:test';
import {
  AuthenticationError,
  ConfigurationError,
  RetryableError,
  TimeoutError,
} from '../../server/connectors/contract/errors.ts';
import { fileDestination } from '../../server/connectors/file/destination.ts';
import { fileSource } from '../../server/connectors/file/source.ts';
import { startHttpServer } from '../support/http-server.ts';
import { startS3, startSigningS3 } from '../support/s3.ts';
import { readFiles, remoteContext } from './file-support.ts';
import { requestOf } from './reading.ts';
import { s3Target, TWO } from './s3-target.ts';

const s3 = await startS3();
const signing = await startSigningS3();
const web = startHttpServer();
afterAll(() => Promise.all([s3.close(), signing.close(), web.close()]));

test('signatures are valid for listings, unusual keys, parts and deletions', async () => {
  await signing.put('in/a b+c(1)!*=ü~.csv', 'id\n1\n');
  const { ctx, recorded, cleanUp } = remoteContext({ ...signing.settings, path: 'in/*.csv' });
  expect((await readFiles(ctx)).rows).toEqual([['1']]);
  expect(recorded.length).toBeGreaterThanOrEqual(3);
  cleanUp();
  const destination = remoteContext({ ...signing.settings, path: 'out', format: 'jsonl' }, { destination: true });
  for (const fence of [1, 2]) {
    const writer = await fileDestination.open(destination.ctx as never, s3Target({ fence, mode: 'overwrite' }));
    await writer.write({ rows: [[String(fence)]], bytes: 1 });
    await writer.finish(null);
  }
  const [key, ...others] = await signing.keys('out/t/');
  expect(others).toEqual([]);
  expect(await signing.get(key ?? '')).toBe('{"id":2}\n');
  const log = JSON.stringify(destination.recorded);
  expect(log).toContain('CompleteMultipartUpload');
  destination.cleanUp();
});

test('every failure has its own class and code, and none contains the secret', async () => {
  await signing.put('a.csv', 'id\n1\n');
  const secret_access_key = 'a-secret-that-nobody-sees';
  const good = { ...signing.settings, path: 'a.csv' };
  const denied = '<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>';
  const moved = '<Error><Code>PermanentRedirect</Code><Message>elsewhere</Message></Error>';
  web.on('/denied/data', () => new Response(denied, { status: 403 }));
  web.on('/moved/data', () => new Response(moved, { status: 301 }));
  web.on('/busy/data', () => new Response('<Error><Code>SlowDown</Code></Error>', { status: 503 }));
  web.on('/page/data', () => new Response('<html>Welcome</html>', { headers: { 'content-type': 'text/html' } }));
  const held = Promise.withResolvers<Response>();
  web.on('/slow/data', () => held.promise);
  const cases: [object, new (...given: never[]) => Error, string][] = [
    [{ ...good, bucket: 'none' }, ConfigurationError, 'bucket_not_found'],
    [{ ...good, access_key_id: 'NOBODY' }, AuthenticationError, 'access_key_unknown'],
    [{ ...good, secret_access_key }, AuthenticationError, 'secret_key_wrong'],
    [{ ...good, endpoint: `${web.url}/denied` }, ConfigurationError, 'access_denied'],
    [{ ...good, endpoint: `${web.url}/moved` }, ConfigurationError, 'region_wrong'],
    [{ ...good, endpoint: `${web.url}/nothing` }, ConfigurationError, 'endpoint_not_s3'],
    [{ ...good, endpoint: `${web.url}/page` }, ConfigurationError, 'endpoint_not_s3'],
    [{ ...good, endpoint: `${web.url}/busy` }, RetryableError, 'server_error'],
    [{ ...good, endpoint: 'http://127.0.0.1:1' }, RetryableError, 'connection_failed'],
    [{ ...good, endpoint: `${web.url}/slow`, timeout_seconds: 0.2 }, TimeoutError, 'request_timeout'],
    [{ ...good, path: 'none.csv' }, ConfigurationError, 'no_files'],
  ];
  for (const [settings, kind, code] of cases) {
    const { ctx, recorded, cleanUp } = remoteContext(settings);
    const error = await fileSource.check(ctx).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ code });
    expect(`${String(error)}${JSON.stringify(recorded)}`).not.toContain(secret_access_key);
    cleanUp();
  }
  held.resolve(new Response());
  const guarded = remoteContext(good, { allow: [] });
  await expect(fileSource.check(guarded.ctx)).rejects.toMatchObject({ code: 'address_not_allowed' });
  guarded.cleanUp();
});

test('the check of a destination names the step that failed', async () => {
  web.on('/read-only/data', () => new Response('<ListBucketResult></ListBucketResult>'));
  web.on(
    '/read-only/data/out/_pipeline_state/*',
    () => new Response('<Error><Code>AccessDenied</Code></Error>', { status: 403 }),
  );
  const settings = { ...s3.settings, endpoint: `${web.url}/read-only`, path: 'out' };
  const { ctx, cleanUp } = remoteContext(settings, { destination: true });
  const { checks } = await fileDestination.check(ctx as never);
  expect(checks.map(({ title, status }) => `${title} ${status}`)).toEqual([
    'Bucket passed',
    'Write failed',
    'Multipart upload skipped',
    'Delete skipped',
  ]);
  expect(checks[1]?.message).toContain('no permission');
  cleanUp();
});

test('a listing of several pages is complete, and patterns select from it', async () => {
  await Promise.all(Array.from({ length: 1100 }, (_, at) => s3.put(`many/${at}.csv`, `id\n${at}\n`)));
  await s3.put('many/other.txt', 'no data');
  const { ctx, recorded, cleanUp } = remoteContext({ ...s3.settings, path: 'many/*.csv' });
  const checks = (await fileSource.check(ctx)).checks;
  expect(checks[0]).toMatchObject({ title: 'Files', status: 'passed', message: '1100 files' });
  const lists = recorded.filter(({ request }) => request.query?.['list-type'] === '2');
  expect(lists).toHaveLength(2);
  const { rows, state } = await readFiles(ctx, { sync_mode: 'incremental' });
  expect(new Set(rows.map(([id]) => id)).size).toBe(1100);
  await s3.put('many/7.csv', 'id\n-7\n');
  await s3.put('many/new.csv', 'id\n-1\n');
  const next = await readFiles(ctx, { sync_mode: 'incremental', state });
  expect(next.rows.toSorted()).toEqual([['-1'], ['-7']]);
  cleanUp();
});

test('an object that is replaced or deleted between listing and reading is a retryable error', async () => {
  for (const change of [() => s3.put('move/b.csv', 'id\n3\n4\n'), () => s3.delete('move/b.csv')]) {
    await s3.put('move/a.csv', 'id\n1\n');
    await s3.put('move/b.csv', 'id\n2\n');
    const { ctx, cleanUp } = remoteContext({ ...s3.settings, path: 'move/*.csv' });
    const [stream] = await fileSource.discover(ctx);
    const read = async () => {
      for await (const batch of fileSource.read(ctx, requestOf(stream!))) if (batch.rows.length > 0) await change();
    };
    await expect(read()).rejects.toMatchObject({ code: 'file_changed', retryable: true });
    cleanUp();
  }
});

test('an upload of any number of rows holds one part in memory', async () => {
  const { ctx, recorded, cleanUp } = remoteContext(
    { ...s3.settings, path: 'large', format: 'jsonl' },
    { destination: true },
  );
  const writer = await fileDestination.open(ctx as never, s3Target({ fence: 1, columns: TWO }));
  const wide = 'x'.repeat(1000);
  for (let batch = 0; batch < 20; batch += 1) {
    const rows = Array.from({ length: 1000 }, (_, at) => [String(batch * 1000 + at), wide]);
    await writer.write({ rows, bytes: 1_000_000 });
  }
  const counts = await writer.finish(null);
  const parts = recorded.filter(({ request }) => request.query?.partNumber);
  expect(parts.map(({ request }) => request.query?.partNumber)).toEqual(['1', '2', '3']);
  const [key] = await s3.keys('large/t/');
  const text = (await s3.get(key ?? '')) ?? '';
  expect(text.split('\n')).toHaveLength(20_001);
  expect(counts).toMatchObject({ rows_loaded: 20_000, bytes_loaded: text.length });
  cleanUp();
});
