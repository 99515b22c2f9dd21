import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { gzipSync } from 'node:zlib';
import { httpApiSource } from '../../server/connectors/http-api/source.ts';
import type { AnySource } from '../../server/connectors/contract/connector.ts';
import { recordingFetch } from '../../server/connector-runtime/recording-fetch.ts';
import { inTurn, json, startHttpServer } from '../support/http-server.ts';
import { apiContext, problemsOf, readAll } from './http-support.ts';

const server = startHttpServer();
/** An object store, which must get no credentials. */
const store = startHttpServer();
afterAll(async () => {
  await server.close();
  await store.close();
});
beforeEach(() => {
  server.seen.length = 0;
  store.seen.length = 0;
  server.on('/exports', json({ id: 7 }));
  server.on('/exports/*', json({}));
});

const schema = { properties: { id: { type: 'integer' } } };
const job = (more: object = {}) => ({
  poll: { path: '/exports/{{ job.id }}' },
  completed: ['done'],
  failed: ['failed'],
  expired: ['expired'],
  empty: ['nothing'],
  interval_seconds: 0.01,
  cancel: { method: 'DELETE', path: '/exports/{{ job.id }}' },
  ...more,
});
const settings = (more: object = {}, stream: object = {}) => ({
  base_url: server.url,
  headers: { 'x-tenant': '{{ secrets.token }}' },
  authentication: { type: 'bearer', token: '{{ secrets.token }}' },
  secrets: { token: 'the-secret-token' },
  streams: [
    {
      name: 'orders',
      schema,
      request: { method: 'POST', path: '/exports', body: { kind: 'orders' } },
      job: job(more),
      ...stream,
    },
  ],
});
const steps = () => server.seen.map(({ method, path }) => `${method} ${path}`);
/** Statuses of the job, one a poll. A cancelled job answers, too. */
const serve = (more: object, ...statuses: unknown[]) => {
  const polls = inTurn(...statuses.map((status) => json({ status, ...more })));
  server.on('/exports/*', (request) => (request.method === 'GET' ? polls(request) : Response.json({})));
};
const ids = (rows: (string | null)[][]) => rows.map(([id]) => id);
const DOWNLOAD = { download: { path: '/files/{{ job.id }}', query: { page: '{{ page.number }}' } } };

describe('a stream with a job', () => {
  test('creates it, polls until it is completed, and reads the result page by page', async () => {
    serve({}, 'queued', 'running', 'done');
    server.on('/files/*', ({ query }) => Response.json(query.page === '3' ? [] : [{ id: Number(query.page) }]));
    const { rows } = await readAll(settings(DOWNLOAD, { pagination: { type: 'page_number' } }));
    expect(ids(rows)).toEqual(['1', '2']);
    expect(steps().slice(0, 5)).toEqual([
      'POST /exports',
      'GET /exports/7',
      'GET /exports/7',
      'GET /exports/7',
      'GET /files/7',
    ]);
    expect(JSON.parse(server.seen[0]!.body)).toEqual({ kind: 'orders' });
  });

  test.each([
    ['csv', 'id\n1\n2\n'],
    ['json_lines', '{"id":1}\n{"id":2}\n'],
    ['json', '[{"id":1},{"id":2}]'],
  ])('reads all results in %s, compressed, without credentials at another host', async (format, text) => {
    serve({ urls: [`${store.url}/1`, `${store.url}/2`] }, 'done');
    store.on('/*', () => new Response(gzipSync(text)));
    const { rows } = await readAll(settings({ urls: 'urls' }, { format }));
    expect(ids(rows)).toEqual(['1', '2', '1', '2']);
    expect(store.seen.map(({ path }) => path)).toEqual(['/1', '/2']);
    expect(JSON.stringify(store.seen)).not.toContain('the-secret-token');
    expect(JSON.stringify(server.seen)).toContain('the-secret-token');
  });

  test('a download that redirects to another host leaves the credentials behind', async () => {
    serve({}, 'done');
    server.on(
      '/files/*',
      () => new Response(null, { status: 302, headers: { location: `${store.url}/signed?key=1` } }),
    );
    store.on('/signed', () => Response.json([{ id: 5 }]));
    const { rows } = await readAll(settings({ download: { path: '/files/{{ job.id }}' } }));
    expect(ids(rows)).toEqual(['5']);
    expect(server.seen.at(-1)?.headers.authorization).toBe('Bearer the-secret-token');
    expect(JSON.stringify(store.seen)).not.toContain('the-secret-token');
  });

  test('an address of a result that has expired is no matter of credentials', async () => {
    serve({ url: `${store.url}/1` }, 'done');
    store.on('/*', () => new Response('expired', { status: 403 }));
    await expect(readAll(settings({ urls: 'url' }))).rejects.toMatchObject({
      code: 'download_refused',
      retryable: true,
    });
  });

  test('reads one job for each window', async () => {
    serve({}, 'done');
    server.on('/files/*', () => Response.json([]));
    const request = { method: 'POST', path: '/exports', body: { from: '{{ window.start }}', to: '{{ window.end }}' } };
    const incremental = { cursor_field: 'at', start: '2026-01-01', step_days: 30, format: 'date' };
    const fields = { properties: { ...schema.properties, at: { type: 'string', format: 'date-time' } } };
    const now = () => new Date('2026-02-15T00:00:00Z');
    await readAll(settings({ download: { path: '/files/{{ job.id }}' } }, { request, incremental, schema: fields }), {
      context: { now },
    });
    const created = server.seen.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body).from);
    expect(created).toEqual(['2026-01-01', '2026-01-31']);
  });

  test('that has no records is empty', async () => {
    serve({}, 'nothing');
    expect((await readAll(settings(DOWNLOAD))).rows).toEqual([]);
  });

  test('waits as long as the service asks', async () => {
    const polls = inTurn(
      () => Response.json({ status: 'running' }, { headers: { 'retry-after': '0.5' } }),
      json({ status: 'done' }),
    );
    const at: number[] = [];
    server.on('/exports/*', (request) => {
      at.push(performance.now());
      return polls(request);
    });
    server.on('/files/*', () => Response.json([]));
    await readAll(settings({ download: { path: '/files/{{ job.id }}' } }));
    expect(at[1]! - at[0]!).toBeGreaterThanOrEqual(490);
  });
});

describe('a job that ends badly', () => {
  test.each([
    ['failed', 'job_failed', 'orders: the job of the service ended with the status "failed"'],
    [
      'unknown',
      'unknown_job_status',
      'the job has the status "unknown" at "status", which the definition does not list',
    ],
  ])('%s: the read fails, and the job is cancelled', async (status, code, message) => {
    serve({}, status);
    const read = readAll(settings({ ...DOWNLOAD, running: ['running'] }));
    await expect(read).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
    expect(steps()).toEqual(['POST /exports', 'GET /exports/7', 'DELETE /exports/7']);
  });

  test('expired: it is created again, once', async () => {
    serve({}, 'expired', 'done');
    server.on('/files/*', () => Response.json([{ id: 3 }]));
    const once = await readAll(settings({ download: { path: '/files/{{ job.id }}' } }));
    expect([ids(once.rows), steps().filter((step) => step === 'POST /exports').length]).toEqual([['3'], 2]);
    server.seen.length = 0;
    serve({}, 'expired');
    await expect(readAll(settings(DOWNLOAD))).rejects.toMatchObject({ code: 'job_timed_out', retryable: true });
    expect(steps().filter((step) => step === 'POST /exports')).toHaveLength(2);
  });

  test('not completed in time: the read fails, and the job is cancelled', async () => {
    serve({}, 'running');
    const late = settings({ ...DOWNLOAD, interval_seconds: 2, timeout_seconds: 1 });
    await expect(readAll(late)).rejects.toMatchObject({ code: 'job_timed_out', retryable: true });
    expect(steps().at(-1)).toBe('DELETE /exports/7');
  });

  test.each([
    ['no id', { id: null }, {}, 'job_id_missing'],
    ['no URL', { id: 7 }, { urls: 'nothing' }, 'job_url_invalid'],
  ])('%s: a clear error', async (_what, created, more, code) => {
    server.on('/exports', json(created));
    serve({}, 'done');
    await expect(readAll(settings('urls' in more ? more : DOWNLOAD))).rejects.toMatchObject({ code });
  });

  test('a stop cancels it, although the requests of the read are aborted', async () => {
    const stop = new AbortController();
    const recorder = { start: () => ({ done: () => {}, failed: () => {} }) };
    const { host } = new URL(server.url);
    const fetch = recordingFetch(recorder, stop.signal, { allow: [host], http: true });
    server.on('/exports/*', ({ method }) => {
      if (method === 'GET') stop.abort(new Error('stopped'));
      return Response.json({ status: 'running' });
    });
    const context = { signal: stop.signal, fetch };
    await expect(readAll(settings(DOWNLOAD), { context })).rejects.toThrow('stopped');
    expect(steps()).toEqual(['POST /exports', 'GET /exports/7', 'DELETE /exports/7']);
  });
});

test('the first page of a stream shows the steps of its job', async () => {
  serve({}, 'running', 'done');
  server.on('/files/*', () => Response.json([{ id: 1 }]));
  const { context } = apiContext(settings(DOWNLOAD, { pagination: { type: 'page_number' } }));
  const tried = await (httpApiSource as AnySource).tryPage!(context, 'orders');
  expect(tried.records).toHaveLength(1);
  expect(tried.next?.url).toBe(`${server.url}/files/7?page=2`);
  expect(steps()).toEqual(['POST /exports', 'GET /exports/7', 'GET /exports/7', 'GET /files/7']);
});

test.each([
  ['neither download nor urls', {}, {}, 'a job needs either download or urls'],
  ['both', { ...DOWNLOAD, urls: 'urls' }, {}, 'a job needs either download or urls'],
  ['a page that no request names', { urls: 'urls' }, { pagination: { type: 'page_number' } }, '{{ page.number }}'],
  ['a job in the request that creates it', DOWNLOAD, { request: { path: '/{{ job.id }}' } }, 'job.id'],
])('a definition with %s is refused', (_what, more, stream, message) => {
  const { secrets, ...definition } = settings(more, stream);
  expect(problemsOf({ definition: JSON.stringify(definition), secrets }).join()).toContain(message);
});
