import { afterAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import { ApiError, createApiClient, isApiError } from '../../client/api.ts';
import { accountConnectors } from '../../db/schema/index.ts';
import { createApp } from '../../server/http/app.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf, uniqueName } from '../support/resources.ts';

const service = await testDeps();
const api = testApi(service);
const app = createApp(service.deps).listen({ hostname: '127.0.0.1', port: 0 });
const url = `http://127.0.0.1:${app.server!.port}`;
afterAll(() => app.server?.stop(true));

const CLIENT = join(import.meta.dir, '../../client/api.ts');
const UNKNOWN = '01900000-0000-7000-8000-000000000000';
const newSource = () => ({
  name: uniqueName('source'),
  connector_type: 'source' as const,
  connector_name: 'sample',
  test_connection: false,
});
const named = (name: string) =>
  service.deps.db.select().from(accountConnectors).where(eq(accountConnectors.name, name));

type Mishap = (forward: () => Promise<Response>) => Promise<Response>;

/** A proxy that simulates one fault after the other, then forwards everything. */
function proxy(mishaps: Mishap[]) {
  const keys: (string | null)[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      keys.push(request.headers.get('idempotency-key'));
      const { pathname, search } = new URL(request.url);
      const body = await request.bytes();
      const { method, headers } = request;
      // The proxy's own fetch would decompress the response and keep its header.
      headers.set('accept-encoding', 'identity');
      const forward = () => fetch(url + pathname + search, { method, headers, ...(body.length > 0 && { body }) });
      return (mishaps.shift() ?? ((onward) => onward()))(forward);
    },
  });
  afterAll(() => server.stop(true));
  return { keys, client: createApiClient(server.url.href, service.api_key) };
}

/** The service does the work, but the response is lost. */
const loseAnswer: Mishap = async (forward) => {
  await forward();
  return new Response('<html>Bad Gateway</html>', { status: 502 });
};
const unavailable =
  (retry_after: string): Mishap =>
  async () =>
    new Response(null, { status: 503, headers: { 'retry-after': retry_after } });

async function failure(call: Promise<unknown>): Promise<ApiError> {
  const error = await call.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!isApiError(error)) throw new Error(`no ApiError but ${String(error)}`);
  return error;
}

describe('a mutation whose response was lost', () => {
  test('is sent again with its key and runs once', async () => {
    const { client, keys } = proxy([loseAnswer, loseAnswer]);
    const body = newSource();
    const made = await client.account_connectors.create.mutate(body);
    expect(made.name).toBe(body.name);
    expect(await named(body.name)).toHaveLength(1);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
  });

  test('each mutation has its own key', async () => {
    const { client, keys } = proxy([]);
    await Promise.all([1, 2].map(() => client.account_connectors.create.mutate(newSource())));
    expect(new Set(keys).size).toBe(2);
  });

  test('waits for Retry-After', async () => {
    const { client } = proxy([unavailable('1')]);
    const start = performance.now();
    await client.users.me.query();
    expect(performance.now() - start).toBeGreaterThan(990);
  });

  test('reports a long Retry-After', async () => {
    const { client, keys } = proxy([unavailable('3600')]);
    expect(await failure(client.users.me.query())).toMatchObject({ status: 503, code: 'unreadable_answer' });
    expect(keys).toHaveLength(1);
  });

  test('fails after four attempts', async () => {
    const { client, keys } = proxy(Array.from({ length: 9 }, () => loseAnswer));
    expect(await failure(client.users.me.query())).toMatchObject({ status: 502, code: 'unreadable_answer' });
    expect(keys).toHaveLength(4);
  });

  test('an aborted signal ends a pause', async () => {
    const { client } = proxy([unavailable('20')]);
    const start = performance.now();
    await failure(client.users.me.query(undefined, { signal: AbortSignal.timeout(100) }));
    expect(performance.now() - start).toBeLessThan(5000);
  });
});

describe('errors', () => {
  const client = createApiClient(url, service.api_key);

  test('have code, status, detail and request ID', async () => {
    const error = await failure(client.connections.get.query({ connection_id: UNKNOWN }));
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code: 'not_found', status: 404, detail: 'Connection not found' });
    expect(error.message).toBe('Connection not found');
    expect(error.request_id).toMatch(/^[\w-]{36}$/);
  });

  test('name the locations of a 422', async () => {
    const error = await failure(client.connections.list.query({ limit: -1 }));
    expect(error).toMatchObject({ code: 'validation_error', status: 422 });
    expect(error.problems).toMatchObject([{ loc: ['query', 'limit'] }]);
    expect(error.message).toStartWith('limit: ');
  });

  test('say which permission is missing', async () => {
    const viewer = createApiClient(url, await api.keyWith([]));
    const error = await failure(viewer.account_connectors.create.mutate(newSource()));
    expect(error).toMatchObject({ status: 403, context: { required_permission: expect.anything() } });
  });

  test('without a response are network errors', async () => {
    const gone = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() });
    await gone.stop(true);
    const error = await failure(createApiClient(gone.url.href, 'key').users.me.query());
    expect(error).toMatchObject({ code: 'network_error', status: null, request_id: null });
  });
});

describe('the client', () => {
  test('batches concurrent reads in one request', async () => {
    const { client, keys } = proxy([]);
    await Promise.all([client.users.me.query(), client.roles.list.query(), client.connectors.list.query()]);
    expect(keys).toHaveLength(1);
  });

  test('runs on Node', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'client-node-'));
    afterAll(() => rmSync(folder, { recursive: true, force: true }));
    const script = join(folder, 'entry.ts');
    const { id: connection_id } = await makerOf(api.call).connection();
    writeFileSync(
      script,
      `import { createApiClient } from '${CLIENT}';
       const api = createApiClient('${url}', '${service.api_key}');
       const connection_id = '${connection_id}';
       const connection_run_id = await api.runs.run.mutate({ connection_id });
       api.runs.progress.subscribe({ connection_id, connection_run_id }, {
         onData: async ({ run }) => {
           console.log(run.status);
           if (run.status === 'queued') await api.runs.stop.mutate({ connection_run_id });
         },
         onError: (error) => { console.log(error); process.exit(1); },
         onComplete: () => process.exit(0),
       });`,
    );
    const built = await Bun.build({ entrypoints: [script], target: 'node', outdir: folder, naming: 'bundle.mjs' });
    expect(built.success).toBe(true);
    const node = Bun.spawn(['node', join(folder, 'bundle.mjs')], { stdout: 'pipe', stderr: 'pipe' });
    const [said, complaint] = await Promise.all([new Response(node.stdout).text(), new Response(node.stderr).text()]);
    expect(complaint).toBe('');
    expect(said.trim().split('\n')).toEqual(['queued', 'stopped']);
    expect(await node.exited).toBe(0);
  });

  test('bundles for browsers, without Node modules', async () => {
    const built = await Bun.build({ entrypoints: [CLIENT], target: 'browser', minify: true });
    const text = await built.outputs[0]!.text();
    expect(text).not.toMatch(/["']node:|\bBun\.|\brequire\(|process\.(env|versions)\b/);
    expect(Bun.gzipSync(text).length).toBeLessThan(20_000);
  });
});
