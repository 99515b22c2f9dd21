import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import { accountConnectors } from '../../db/schema/index.ts';
import { openSecrets } from '../../server/connector-runtime/connector-secrets.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { rotateSecret } from '../../server/connector-runtime/rotate-secret.ts';
import { manifestOf, streamOf } from '../connectors/manifest-support.ts';
import { testDeps } from '../support/database.ts';
import { startHttpServer } from '../support/http-server.ts';
import { makePipeline, runEnded } from '../support/pipeline.ts';

const server = startHttpServer();
const service = await testDeps({
  role: 'worker',
  config: { RETRY_BACKOFF_SECONDS: 0, EGRESS_ALLOW: [new URL(server.url).host] },
});
const worker = await startWorker(service.deps);
afterAll(async () => {
  await worker.stop();
  await server.close();
});
const { deps } = service;

const rowOf = async (id: string) => {
  const [row] = await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, id));
  if (!row) throw new Error('no row');
  return row;
};

/** A service that accepts each refresh token once, and returns the next one with the access token. */
const counts = new Map<string, number>();
server.on('/token/*', ({ path, body }) => {
  const form = new URLSearchParams(body);
  const count = counts.get(path) ?? 0;
  if (form.get('refresh_token') !== `refresh-${count}`) return Response.json({ error: 'used up' }, { status: 400 });
  counts.set(path, count + 1);
  return Response.json({ access_token: `access-${count}`, refresh_token: `refresh-${count + 1}`, expires_in: 0.001 });
});
server.on('/items', ({ headers }) =>
  headers.authorization?.startsWith('Bearer access-') ? Response.json([{ id: 1 }]) : Response.json({}, { status: 401 }),
);

const SOURCES = {
  http_api: (name: string) => ({
    definition: JSON.stringify({
      base_url: server.url,
      authentication: {
        type: 'oauth2_refresh_token',
        token_url: `${server.url}/token/${name}`,
        client_id: name,
        client_secret: '{{ secrets.client_secret }}',
        refresh_token: '{{ secrets.refresh }}',
      },
      streams: [{ name: 'items', request: { path: '/items' }, schema: { properties: { id: { type: 'integer' } } } }],
    }),
    secrets: { client_secret: 'cs', refresh: 'refresh-0' },
  }),
  airbyte_manifest: (name: string) => ({
    manifest: JSON.stringify(
      manifestOf([
        streamOf('items', {
          url: server.url,
          properties: { id: { type: 'integer' } },
          requester: {
            authenticator: {
              type: 'OAuthAuthenticator',
              token_refresh_endpoint: `${server.url}/token/${name}`,
              client_id: name,
              client_secret: "{{ config['credentials']['client_secret'] }}",
              refresh_token: "{{ config['credentials']['refresh'] }}",
            },
          },
        }),
      ]),
    ),
    secrets: { credentials: { client_secret: 'cs', refresh: 'refresh-0' } },
  }),
};

describe.each(Object.keys(SOURCES) as (keyof typeof SOURCES)[])('%s', (name) => {
  test('stores the refresh token that its service replaced, sealed, and uses it from then on', async () => {
    const created = await makePipeline(service, {
      source: { name, parameters: SOURCES[name](name) },
      destination: { name: 'sample', parameters: {} },
    });
    for (const count of [1, 2]) {
      expect((await runEnded(service, await created.start())).status).toBe('succeeded');
      const row = await rowOf(created.source.id);
      expect(JSON.stringify(openSecrets(deps, row))).toContain(`refresh-${counts.get(`/token/${name}`)}`);
      expect(counts.get(`/token/${name}`)).toBeGreaterThanOrEqual(count);
      expect(JSON.stringify(row)).not.toContain('refresh-');
    }
  });
});

const stored = (name: string) =>
  makePipeline(service, {
    source: { name: 'http_api', parameters: SOURCES.http_api(name) },
    destination: { name: 'sample', parameters: {} },
  });

describe('a secret', () => {
  const { signal } = new AbortController();

  test('is replaced only if stored, and two concurrent rotations keep both changes', async () => {
    const { source: row } = await stored('twice');
    const rotate = (given: string, next: string) =>
      rotateSecret(deps, { row, given, signal }, async ({ current, replace }) => [current, await replace(given, next)]);
    expect(await rotate('unknown', 'x')).toEqual([null, false]);
    expect(await rotate('', 'x')).toEqual([null, false]);
    const gone = { ...row, id: Bun.randomUUIDv7(), secrets: null, parameters: { a: 'cs' } };
    expect(await rotateSecret(deps, { row: gone, given: 'cs', signal }, (one) => one.replace('cs', 'x'))).toBe(false);
    const both = await Promise.all([rotate('cs', 'b'), rotate('refresh-0', 'r')]);
    expect(both.map(([, replaced]) => replaced)).toEqual([true, true]);
    // Either may run first; the second one finds the change of the first.
    expect(both.map(([current]) => current).filter((current) => current !== null)).toHaveLength(1);
    expect(openSecrets(deps, await rowOf(row.id))).toMatchObject({ secrets: { client_secret: 'b', refresh: 'r' } });
  });

  test('is read as currently stored, unless other settings have changed too', async () => {
    const { source: row } = await stored('now');
    const seen = (given: string) => rotateSecret(deps, { row, given, signal }, async ({ current }) => current);
    await rotateSecret(deps, { row, given: 'refresh-0', signal }, ({ replace }) => replace('refresh-0', 'refresh-1'));
    expect(await seen('refresh-0')).toBe('refresh-1');
    const parameters = { definition: 'another' };
    await deps.db.update(accountConnectors).set({ parameters }).where(eq(accountConnectors.id, row.id));
    expect(await seen('refresh-0')).toBeNull();
  });

  test('stops waiting when the read is aborted', async () => {
    const { source: row } = await stored('stopped');
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const holder = rotateSecret(deps, { row, given: 'refresh-0', signal }, async () => (begin(), await held));
    await begun;
    const abort = new AbortController();
    const waiting = rotateSecret(deps, { row, given: 'refresh-0', signal: abort.signal }, async () => 'never');
    abort.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
    letGo();
    await holder;
  });

  test('leaves database connections for other work, however many secrets are locked', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `one of many ${index}`);
    const work = async (name: string) => {
      const [row] = await deps.db.execute<{ name: string }>(sql`select ${name} as name`);
      return row?.name;
    };
    expect(await Promise.all(names.map((name) => deps.database.alone({ name, signal }, () => work(name))))).toEqual(
      names,
    );
  });
});

test('two processes that refresh at the same moment use each refresh token once', async () => {
  const { source: row } = await stored('processes');
  let [count, opened] = [0, 0];
  const asked = new Set<string>();
  const { promise: both, resolve: isBoth } = Promise.withResolvers<void>();
  server.on('/token/processes', async ({ body }) => {
    const used = new URLSearchParams(body).get('refresh_token') ?? '';
    const again = asked.has(used);
    asked.add(used);
    if (again) isBoth();
    // Gives the other process time to send the same token, if nothing prevents it.
    if (count === 0) await Promise.race([both, Bun.sleep(1500)]);
    if (again || used !== `refresh-${count}`) return Response.json({ error: 'used up' }, { status: 400 });
    count += 1;
    return Response.json({ access_token: `access-${count}`, refresh_token: `refresh-${count}`, expires_in: 3600 });
  });
  const { DATA_DIR, SECRET_KEY } = deps.config;
  const script = join(import.meta.dir, '../support/hold-connector.ts');
  const env = { ...process.env, DATA_DIR, SECRET_KEY, EGRESS_ALLOW: new URL(server.url).host, LOG_LEVEL: 'silent' };
  const children = [1, 2].map(() =>
    Bun.spawn([process.execPath, script, service.url, row.id], { env, stdin: 'pipe', stdout: 'pipe' }),
  );
  const outputs = await Promise.all(
    children.map(async ({ stdout }) => {
      let text = '';
      for await (const chunk of stdout.pipeThrough(new TextDecoderStream())) {
        text += chunk;
        if (text !== 'open\n') continue;
        opened += 1;
        if (opened < children.length) continue;
        for (const { stdin } of children) {
          void stdin.write('go\n');
          await stdin.end();
        }
      }
      return text;
    }),
  );
  expect(outputs).toEqual(['open\npassed\n', 'open\npassed\n']);
  expect(count).toBe(2);
  expect(openSecrets(deps, await rowOf(row.id))).toMatchObject({ secrets: { refresh: 'refresh-2' } });
});
