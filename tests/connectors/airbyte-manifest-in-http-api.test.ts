import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import { stringify } from 'yaml';
import { accountConnectors } from '../../db/schema/index.ts';
import { httpApiSource } from '../../server/connectors/http-api/source.ts';
import { parseParameters } from '../../server/connectors/contract/parameters.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testDeps } from '../support/database.ts';
import { startHttpServer } from '../support/http-server.ts';
import { getStreamRuns, makePipeline, runEnded } from '../support/pipeline.ts';
import { manifestOf, streamOf } from './manifest-support.ts';

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

const migrations = join(import.meta.dir, '../../db/migrations');
const migration = readdirSync(migrations).find((name) => name.endsWith('_manifests_out_of_http_api.sql')) ?? '';

const rowOf = async (id: string) => {
  const [row] = await deps.db.select().from(accountConnectors).where(eq(accountConnectors.id, id));
  if (!row) throw new Error('no row');
  return row;
};

const manifest = (name: string) =>
  manifestOf([
    streamOf(name, {
      url: server.url,
      properties: { id: { type: 'integer' }, updated_at: { type: 'string', format: 'date-time' } },
      requester: {
        request_parameters: { since: "{{ stream_interval['start_time'] }}" },
        authenticator: { type: 'BearerAuthenticator', api_token: "{{ config['credentials']['token'] }}" },
      },
      incremental_sync: {
        type: 'DatetimeBasedCursor',
        cursor_field: 'updated_at',
        datetime_format: '%Y-%m-%dT%H:%M:%SZ',
        start_datetime: "{{ config['since'] }}",
      },
    }),
  ]);

const WAYS = {
  json: (name: string) => JSON.stringify(manifest(name), null, 2),
  yaml: (name: string) => stringify(manifest(name)),
};

test.each(['json', 'yaml'] as const)('a manifest stored with http_api is migrated and resumes: %s', async (way) => {
  const records = [{ id: 1, updated_at: '2026-01-02T00:00:00Z' }];
  const asked: (string | undefined)[] = [];
  server.on(`/${way}`, ({ query, headers }) => {
    if (headers.authorization !== 'Bearer s3cret') return Response.json({}, { status: 401 });
    asked.push(query.since);
    return Response.json(records);
  });
  const definition = WAYS[way](way);
  const config = { since: '2026-01-01T00:00:00Z' };
  const made = await makePipeline(service, {
    source: {
      name: 'airbyte_manifest',
      parameters: { manifest: definition, config, secrets: { credentials: { token: 's3cret' } } },
    },
    destination: { name: 'sample', parameters: {} },
    stream: { sync_mode: 'incremental' },
  });
  expect((await runEnded(service, await made.start())).status).toBe('succeeded');
  const before = await rowOf(made.source.id);
  await deps.db
    .update(accountConnectors)
    .set({ connector_name: 'http_api', parameters: { definition, config, secrets: '**********' } })
    .where(eq(accountConnectors.id, before.id));

  await deps.db.execute(sql.raw(readFileSync(join(migrations, migration), 'utf8')));

  expect(await rowOf(before.id)).toMatchObject({
    connector_name: 'airbyte_manifest',
    parameters: { manifest: definition, config, secrets: '**********' },
    secrets: before.secrets,
  });
  records.push({ id: 2, updated_at: '2026-01-03T00:00:00Z' });
  asked.length = 0;
  const run_id = await made.start();
  expect((await runEnded(service, run_id)).status).toBe('succeeded');
  expect(asked).toEqual(['2026-01-02T00:00:00Z']);
  expect((await getStreamRuns(service, run_id)).map(({ rows_loaded }) => rows_loaded)).toEqual([1]);
});

test('definitions of http_api itself stay unchanged', async () => {
  const definition = JSON.stringify({
    base_url: server.url,
    streams: [
      { name: 'DeclarativeSource', request: { path: '/x' }, schema: { properties: { id: { type: 'integer' } } } },
    ],
  });
  const made = await makePipeline(service, {
    source: { name: 'http_api', parameters: { definition } },
    destination: { name: 'sample', parameters: {} },
  });
  await deps.db.execute(sql.raw(readFileSync(join(migrations, migration), 'utf8')));
  expect(await rowOf(made.source.id)).toMatchObject({ connector_name: 'http_api', parameters: { definition } });
});

test.each(['json', 'yaml'] as const)('http_api rejects a manifest and names its connector: %s', (way) => {
  expect(parseParameters(httpApiSource, { definition: WAYS[way]('items') })).toEqual({
    problems: [
      {
        parameter: 'definition',
        code: 'use_airbyte_manifest',
        message: 'The definition is an Airbyte manifest. Use the connector airbyte_manifest for it.',
      },
    ],
  });
});
