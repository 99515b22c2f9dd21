import { afterAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accountConnectors } from '../../db/schema/index.ts';
import { openSecrets } from '../../server/engine/connector-context.ts';
import { startWorker } from '../../server/engine/handlers.ts';
import { rotateSecret } from '../../server/engine/rotate-secret.ts';
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

/** A service that takes each refresh token once, and gives the next one with the access token. */
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
  test('stores the refresh token that its service replaced, sealed, and goes on from it', async () => {
    const made = await makePipeline(service, {
      source: { name, parameters: SOURCES[name](name) },
      destination: { name: 'sample', parameters: {} },
    });
    for (const count of [1, 2]) {
      expect((await runEnded(service, await made.start())).status).toBe('succeeded');
      const row = await rowOf(made.source.id);
      expect(JSON.stringify(openSecrets(deps, row))).toContain(`refresh-${counts.get(`/token/${name}`)}`);
      expect(counts.get(`/token/${name}`)).toBeGreaterThanOrEqual(count);
      expect(JSON.stringify(row)).not.toContain('refresh-');
    }
  });
});

describe('a secret', () => {
  test('that is not stored is put nowhere, and of two rotations none undoes the other', async () => {
    const made = await makePipeline(service, {
      source: {
        name: 'http_api',
        parameters: { ...SOURCES.http_api('twice'), secrets: { client_secret: 'a', refresh: 'refresh-0' } },
      },
      destination: { name: 'sample', parameters: {} },
    });
    const rotate = (used: string, replacement: string) => rotateSecret(deps, made.source.id, { used, replacement });
    expect(await rotate('unknown', 'x')).toBe(false);
    expect(await rotate('', 'x')).toBe(false);
    expect(await rotateSecret(deps, Bun.randomUUIDv7(), { used: 'a', replacement: 'x' })).toBe(false);
    expect(await Promise.all([rotate('a', 'b'), rotate('refresh-0', 'r')])).toEqual([true, true]);
    expect(openSecrets(deps, await rowOf(made.source.id))).toMatchObject({
      secrets: { client_secret: 'b', refresh: 'r' },
    });
  });
});
