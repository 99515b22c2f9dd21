import { afterAll, expect, test } from 'bun:test';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { accountConnectors } from '../../db/schema/index.ts';
import { filesRootOf } from '../../server/connector-runtime/files-root.ts';
import { onDuckDb } from '../connectors/duckdb-places.ts';
import { manifestOf, streamOf } from '../connectors/manifest-support.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { base_url, foreign_host, FOREIGN_INPUTS, stopForeignServer } from '../support/foreign-inputs.ts';
import { childrenMs } from '../support/processes.ts';
import { uniqueName } from '../support/resources.ts';
import { until } from '../support/until.ts';

afterAll(stopForeignServer);

const service = await testDeps({
  config: { EGRESS_ALLOW: [foreign_host], TEST_CONNECTORS: false },
});
const { call } = testApi(service);
const folder = await filesRootOf(service.deps, service.account_id);
await mkdir(folder, { recursive: true });
await onDuckDb(join(folder, 'one.duckdb'), 'create table t as select 1 as n');

test.each(FOREIGN_INPUTS)('%s is tested outside of this process', async (_what, body, code) => {
  const before = process.cpuUsage();
  const created = await call('POST', '/account_connectors', {
    name: uniqueName('foreign'),
    connector_type: 'source',
    ...body,
  });
  const { user, system } = process.cpuUsage(before);
  expect(created).toMatchObject({ status: 201 });
  expect(created.body).toMatchObject(code === null ? { status: 'active' } : { status: 'broken', status_reason: code });
  // The work itself takes seconds of processor time.
  expect((user + system) / 1000).toBeLessThan(1_000);
});

/** Documents that took the API seconds to validate. Null: valid. */
const stream = streamOf('s', { url: base_url, path: '/x' });
const shared = { ...stream, transformations: Array.from({ length: 1_600 }, () => ({ type: 'DpathFlattenFields' })) };
const DOCUMENTS: [what: string, connector_name: string, parameters: object, message: string | null][] = [
  [
    'a manifest of 500 streams',
    'airbyte_manifest',
    { manifest: JSON.stringify(manifestOf(Array.from({ length: 500 }, (_, at) => ({ ...stream, name: `s${at}` })))) },
    null,
  ],
  [
    'a manifest that refers 5,000 times to one part',
    'airbyte_manifest',
    {
      manifest: JSON.stringify({
        ...manifestOf(Array.from({ length: 5_000 }, () => ({ $ref: '#/definitions/shared' }))),
        definitions: { shared },
      }),
    },
    'expand to too many values',
  ],
  [
    'a definition of 5,000 streams',
    'http_api',
    {
      definition: JSON.stringify({
        base_url,
        streams: Array.from({ length: 5_000 }, (_, at) => ({ name: `s${at}`, request: { path: '/' } })),
      }),
    },
    'expected array to have <=500 items',
  ],
];

test.each(DOCUMENTS)('%s is validated outside of this process', async (_what, connector_name, parameters, message) => {
  await untilOthersTookMore(async () => {
    const before = childrenMs();
    const body = { name: uniqueName('document'), connector_type: 'source', connector_name, parameters };
    const created = await call('POST', '/account_connectors', { ...body, test_connection: false });
    if (message === null) expect(created).toMatchObject({ status: 201, body: { status: 'pending_test' } });
    else expect(created).toMatchObject({ status: 400, body: { detail: expect.stringContaining(message) } });
    return childrenMs() - before;
  });
});

test('a rule is tried outside of this process', async () => {
  const rule = Array.from({ length: 59 }, () => 'size(error_message) == 0').join(' || ');
  const event = { event: 'x', error_message: 'é'.repeat(500_000) };
  await untilOthersTookMore(async () => {
    const { body } = await call('POST', '/automation/evaluate_automator_rule', { rule, event });
    expect(body).toMatchObject({ is_valid: true, result: false });
    return body.duration_ms;
  });
});

/**
 * Work inside of this process would always take its own time and more, on a slow machine too. What else runs here, such
 * as a collection of garbage, adds to some trials.
 * @param work its result: milliseconds that the work took
 */
async function untilOthersTookMore(work: () => Promise<number>): Promise<void> {
  await until(async () => {
    const before = process.cpuUsage();
    const outside = await work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000 < outside;
  });
}

test('connectors for tests do not exist outside of tests', async () => {
  for (const connector_type of ['source', 'destination']) {
    const body = { name: uniqueName('hidden'), connector_type, connector_name: 'sample', parameters: {} };
    const refused = await call('POST', '/account_connectors', body);
    expect(refused).toMatchObject({ status: 400, body: { code: 'unknown_connector', field: 'connector_name' } });
  }
  const { body: catalog } = await call('GET', '/connectors');
  expect(JSON.stringify(catalog)).not.toContain('"sample"');
  const identity = { account_id: service.account_id, name: uniqueName('stored') };
  const stored = {
    ...identity,
    connector_type: 'source' as const,
    connector_name: 'sample',
    status: 'active' as const,
  };
  const [row] = await service.deps.db.insert(accountConnectors).values(stored).returning();
  const login = await call('POST', `/account_connectors/${row!.id}/login`);
  expect(login).toMatchObject({ status: 400, body: { upstream_code: 'unknown_connector' } });
});
