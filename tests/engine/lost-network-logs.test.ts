import { afterAll, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createApp } from '../../server/http/app.ts';
import { openObjectStore } from '../../server/platform/object-store.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testDeps } from '../support/database.ts';
import { startHttpServer } from '../support/http-server.ts';
import { makePipeline, runEnded } from '../support/pipeline.ts';
import { temporaryFolder } from '../support/postgres.ts';

const rows = startHttpServer();
const refusing = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('denied', { status: 403 }) });
const silent = Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 0, fetch: () => new Promise<never>(() => {}) });
rows.on('/items', () => Response.json([{ id: 1 }, { id: 2 }]));

const file = join(temporaryFolder(), 'no-folder');
writeFileSync(file, '');
const bucket = (server: { port?: number }) => `s3://id:secret@logs?endpoint=http://127.0.0.1:${server.port}&region=eu`;
const STORES = {
  'that refuses': bucket(refusing),
  'that never answers': bucket(silent),
  'that cannot be written': pathToFileURL(file).href,
};

const service = await testDeps({ role: 'worker', config: { EGRESS_ALLOW: [new URL(rows.url).host] } });
const worker = await startWorker(service.deps);
afterAll(async () => {
  await worker.stop();
  await Promise.all([rows.close(), refusing.stop(true), silent.stop(true)]);
});

test.each(Object.entries(STORES))(
  'an object store %s loses the network log of a run, which succeeds with a warning, and readyz is degraded',
  async (_, url) => {
    service.deps.objects = openObjectStore(url, 200);
    const definition = { base_url: rows.url, streams: [{ name: 'items', request: { path: '/items' } }] };
    const { start } = await makePipeline(service, {
      source: { name: 'http_api', parameters: { definition: JSON.stringify(definition) } },
      destination: { name: 'sample', parameters: {} },
    });
    const run = await runEnded(service, await start());
    expect(run).toMatchObject({ status: 'succeeded', error: null });
    expect(run.warnings).toContainEqual({
      code: 'network_log_lost',
      message: expect.stringMatching(/^\d+ entr(y|ies) of the source's network log could not be stored: ./),
      stream_name: 'items',
    });
    const ready = await createApp(service.deps).handle(new Request('http://localhost/readyz'));
    expect(ready.status).toBe(200);
    expect(await ready.json()).toMatchObject({ status: 'degraded', detail: expect.stringContaining('object store') });
  },
);
