import { afterAll, expect, test } from 'bun:test';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { accountConnectors } from '../../db/schema/index.ts';
import { filesRootOf } from '../../server/connector-runtime/files-root.ts';
import { onDuckDb } from '../connectors/duckdb-places.ts';
import { manifestOf, streamOf } from '../connectors/manifest-support.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { uniqueName } from '../support/resources.ts';

const page = `[${'0.1,'.repeat(15_000_000)}1]`;
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: ({ url }) =>
    url.includes('/page')
      ? new Response(page)
      : Response.json({ x: Array.from({ length: 50 }, (_, a) => ({ a })), big: 'a'.repeat(900_000) }),
});
afterAll(() => server.stop(true));
const base_url = `http://127.0.0.1:${server.port}`;

const service = await testDeps({
  config: { EGRESS_ALLOW: [`127.0.0.1:${server.port}`], TEST_CONNECTORS: false },
});
const { call } = testApi(service);
const folder = await filesRootOf(service.deps, service.account_id);
await mkdir(folder, { recursive: true });
await onDuckDb(join(folder, 'one.duckdb'), 'create table t as select 1 as n');

const api = (path: string, records = '@') => ({
  connector_name: 'http_api',
  parameters: {
    definition: JSON.stringify({
      base_url,
      max_page_bytes: 128 * 1024 * 1024,
      streams: [{ name: 's', records, request: { path } }],
    }),
  },
});
const manifest = (template: string) => ({
  connector_name: 'airbyte_manifest',
  parameters: {
    manifest: JSON.stringify(
      manifestOf([
        streamOf('s', {
          url: base_url,
          path: '/x',
          selector: { record_filter: { condition: template } },
          properties: { x: { type: 'array' } },
        }),
      ]),
    ),
  },
});
const duckdb = (sql: string) => ({
  connector_name: 'duckdb',
  parameters: { path: 'one.duckdb' },
  datasets: [{ name: 'asked', sql }],
});
const list = JSON.stringify(Array.from({ length: 400 }, (_, at) => at));

/** Inputs that once held the API for 3 to 22 s, or filled its memory. Null: valid, and quick now. */
const INPUTS: [what: string, body: object, code: string | null][] = [
  [
    'a template with a loop of 400 steps',
    manifest(`{% for i in ${list} %}{{ record.big | reverse | upper }}{% endfor %}`),
    'template_failed',
  ],
  [
    'a time format of ten %f',
    manifest(`{{ format_datetime('${'1'.repeat(60)}x', '%Y', '${'%f'.repeat(10)}') }}`),
    'template_failed',
  ],
  [
    'a JMESPath expression nested four deep',
    api('/x', 'map(&map(&map(&map(&a, $.x), $.x), $.x), x)'),
    'selector_failed',
  ],
  ['a query with 60 kB of blanks', duckdb(`select 1${' '.repeat(60_000)}as n`), null],
  ['a query that fills the memory', duckdb('select list(i) as n from range(60000000) r(i)'), null],
  ['a query that is folded into a huge value', duckdb('select range(60000000) as n'), 'memory_limit_exceeded'],
  ['a page of 60 MB', api('/page'), 'json_limit_exceeded'],
];

test.each(INPUTS)('%s is tested outside of this process', async (_what, body, code) => {
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
  const before = process.cpuUsage();
  const body = { name: uniqueName('document'), connector_type: 'source', connector_name, parameters };
  const created = await call('POST', '/account_connectors', { ...body, test_connection: false });
  const { user, system } = process.cpuUsage(before);
  if (message === null) expect(created).toMatchObject({ status: 201, body: { status: 'pending_test' } });
  else expect(created).toMatchObject({ status: 400, body: { detail: expect.stringContaining(message) } });
  expect((user + system) / 1000).toBeLessThan(250);
});

test('a rule is tried outside of this process', async () => {
  const rule = Array.from({ length: 59 }, () => 'size(error_message) == 0').join(' || ');
  const event = { event: 'x', error_message: 'é'.repeat(500_000) };
  const before = process.cpuUsage();
  const { body } = await call('POST', '/automation/evaluate_automator_rule', { rule, event });
  const { user, system } = process.cpuUsage(before);
  expect(body).toMatchObject({ is_valid: true, result: false });
  expect((user + system) / 1000).toBeLessThan(body.duration_ms);
});

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
