import { afterAll, expect, test } from 'bun:test';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
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

const service = await testDeps({ config: { EGRESS_ALLOW: [`127.0.0.1:${server.port}`] } });
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
