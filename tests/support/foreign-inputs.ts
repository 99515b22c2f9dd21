import { manifestOf, streamOf } from '../connectors/manifest-support.ts';

/*
 * Inputs that once held the API for 3 to 22 s, or filled its memory. The DuckDB file `one.duckdb` must exist in the
 * account's folder.
 */

const page = `[${'0.1,'.repeat(15_000_000)}1]`;
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: ({ url }) =>
    url.includes('/page')
      ? new Response(page)
      : Response.json({ x: Array.from({ length: 50 }, (_, a) => ({ a })), big: 'a'.repeat(900_000) }),
});
export const stopForeignServer = () => server.stop(true);
/** Serves what the inputs refer to. */
export const foreign_host = `127.0.0.1:${server.port}`;
export const base_url = `http://${foreign_host}`;

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

/** Null: valid, and quick now. */
export const FOREIGN_INPUTS: [what: string, body: object, code: string | null][] = [
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
