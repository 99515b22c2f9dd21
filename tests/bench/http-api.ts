/**
 * `bun tests/bench/http-api.ts [pages] [rounds] [delay_ms]`: reading a REST API by the http_api source against a bare
 * fetch loop over the same pages that parses them and does nothing with their records. The server is a separate process
 * that keeps its pages in memory; `delay_ms` (default 5) is its delay before each page, as a service over a network has.
 */
import { httpApiSource } from '../../server/connectors/http-api/source.ts';
import type { ConnectorContext } from '../../server/connectors/contract/connector.ts';
import { recordingFetch } from '../../server/connector-runtime/recording-fetch.ts';
import { report, type Times } from './report.ts';

const PAGES = Number(process.argv[2] ?? 1000);
const ROUNDS = Number(process.argv[3] ?? 7);
const DELAY_MS = Number(process.argv[4] ?? 5);
const SIZE = 100;

/** Pages of records, created once. Each names the next page in its body and in a Link header. */
function serve(pages: number, delay_ms: number): void {
  const bodies = Array.from({ length: pages }, (_, page) => {
    const items = Array.from({ length: SIZE }, (_item, at) => recordOf(page * SIZE + at));
    return Buffer.from(JSON.stringify({ items, next: page + 1 < pages ? String(page + 2) : null }));
  });
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      if (delay_ms > 0) await Bun.sleep(delay_ms);
      const { searchParams } = new URL(request.url);
      const page = Number(searchParams.get('page') ?? 1);
      const headers: Record<string, string> = { 'content-type': 'application/json' };
      if (page < pages) headers.link = `</items?page=${page + 1}>; rel="next"`;
      return new Response(bodies[page - 1] ?? '{"items": [], "next": null}', { headers });
    },
  });
  console.log(server.url.origin);
}

const recordOf = (id: number) => ({
  id,
  name: `Customer ${id}`,
  email: `customer${id}@example.com`,
  amount: id * 1.25,
  active: id % 3 === 0,
  created_at: new Date(1_767_225_600_000 + id * 1000).toISOString(),
  address: { street: `${id} Main Street`, city: 'Springfield' },
  tags: ['a', `b${id % 10}`],
});

async function measure(delay_ms: number): Promise<void> {
  const arguments_ = ['serve', String(PAGES), String(delay_ms)];
  const server = Bun.spawn([process.execPath, import.meta.path, ...arguments_], { stdout: 'pipe' });
  try {
    const { value } = await server.stdout.getReader().read();
    const origin = new TextDecoder().decode(value).trim();
    const guarded = recordingFetch(SILENT, new AbortController().signal, { allow: [new URL(origin).host], http: true });
    const ways: Record<string, () => Promise<number>> = {
      'bare fetch loop': () => bareLoop(origin, fetch),
      'http_api, token in the body': await reader(origin, TOKEN, fetch),
      'http_api, Link header': await reader(origin, LINK, fetch),
      'http_api, page number, two at a time': await reader(origin, NUMBER, fetch),
      'bare loop by the guarded, recording fetch': () => bareLoop(origin, guarded),
      'http_api by the guarded, recording fetch': await reader(origin, TOKEN, guarded),
    };
    const times: Times = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
    for (let round = -1; round < ROUNDS; round += 1) {
      for (const [way, work] of Object.entries(ways)) {
        const begun = performance.now();
        const pages = await work();
        if (pages !== PAGES) throw new Error(`${way}: ${pages} pages`);
        // The first round only warms up.
        if (round >= 0) times[way]?.push((performance.now() - begun) / 1000);
      }
    }
    report(`Pages of ${SIZE} records from a REST API that takes ${delay_ms} ms for each`, PAGES * SIZE, times, [
      ['http_api, token in the body', 'bare fetch loop', 0.8],
      ['http_api, Link header', 'bare fetch loop', 0.8],
      ['http_api, page number, two at a time', 'bare fetch loop', 0.8],
      ['http_api by the guarded, recording fetch', 'bare loop by the guarded, recording fetch', 0.8],
    ]);
    console.log(`  resident: ${Math.round(process.memoryUsage.rss() / 1e6)} MB`);
  } finally {
    server.kill();
    await server.exited;
  }
}

async function bareLoop(origin: string, get: typeof fetch): Promise<number> {
  let pages = 0;
  for (; pages < PAGES; pages += 1) {
    const response = await get(`${origin}/items?page=${pages + 1}`);
    await response.json();
  }
  return pages;
}

const TOKEN = {
  request: { path: '/items', query: { page: '{{ page.token }}' } },
  pagination: { type: 'cursor', token: 'next' },
};
const NUMBER = {
  request: { path: '/items', query: { page: '{{ page.number }}' } },
  pagination: { type: 'page_number', has_more: 'next' },
};
const LINK = { request: { path: '/items' }, pagination: { type: 'link_header' } };
const SILENT = { start: () => ({ done() {}, failed() {} }) };

/** Discovered once, as for runs, then read repeatedly. */
async function reader(origin: string, way: object, get: typeof fetch): Promise<() => Promise<number>> {
  const definition = JSON.stringify({ base_url: origin, streams: [{ name: 'items', records: 'items', ...way }] });
  const ctx = {
    config: httpApiSource.config.parse({ definition }),
    fetch: get,
    recorder: SILENT,
    log: console,
    now: () => new Date(),
    signal: new AbortController().signal,
    filesRoot: '/nowhere',
    warn() {},
    rateLimited() {},
  } as unknown as ConnectorContext<never>;
  const [stream] = await httpApiSource.discover(ctx);
  if (!stream) throw new Error('no stream');
  const columns = stream.fields.map((field) => ({ field, masking: 'none' as const }));
  const request = { stream, columns, filters: [], primary_key: [], state: null, window: null };
  return async () => {
    let rows = 0;
    for await (const batch of httpApiSource.read(ctx, { ...request, sync_mode: 'full_refresh', cursor_field: null })) {
      rows += batch.rows.length;
    }
    return rows / SIZE;
  };
}

if (process.argv[2] === 'serve') serve(Number(process.argv[3]), Number(process.argv[4]));
else for (const delay_ms of new Set([DELAY_MS, 0])) await measure(delay_ms);
