/**
 * `bun tests/bench/http-streams.ts [pages] [rounds]`: one run of four `http_api` streams, side by side
 * (`max_parallel_streams` 4) against one after the other (1). The server answers each page after 50 ms.
 */
import { median } from './report.ts';
import { runToEnd, startService } from './service.ts';

const PAGES = Number(process.argv[2] ?? 80);
const ROUNDS = Number(process.argv[3] ?? 5);
const GOAL = 3.5;
const ANSWER_MS = 50;
const SIZE = 100;

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    await Bun.sleep(ANSWER_MS);
    const page = Number(new URL(request.url).searchParams.get('page') ?? 1);
    if (page > PAGES) return Response.json([]);
    return Response.json(Array.from({ length: SIZE }, (_, at) => ({ id: page * SIZE + at, name: `Name ${at}` })));
  },
});
const service = await startService({ EGRESS_ALLOW: `127.0.0.1:${server.port}` });
try {
  const names = ['a', 'b', 'c', 'd'];
  const definition = JSON.stringify({
    base_url: server.url.origin,
    rate_limit: { concurrency: 8 },
    streams: names.map((name) => ({
      name,
      request: { path: `/${name}`, query: { page: '{{ page.number }}' } },
      pagination: { type: 'page_number' },
      schema: { properties: { id: { type: 'integer' }, name: { type: 'string' } } },
    })),
  });
  const end = async (connector_type: string, connector_name: string, parameters: object) => {
    const body = { name: `${connector_name} ${Bun.randomUUIDv7()}`, connector_type, connector_name, parameters };
    return (await service.call<{ id: string }>('POST', '/account_connectors', body)).id;
  };
  const source_id = await end('source', 'http_api', { definition });
  const connection = async (max_parallel_streams: number) => {
    const destination_id = await end('destination', 'file', { path: `out-${max_parallel_streams}`, format: 'csv' });
    const streams = names.map((name) => ({ name, sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' }));
    const body = {
      name: `${max_parallel_streams} at a time`,
      source_id,
      destination_id,
      streams,
      max_parallel_streams,
    };
    return (await service.call<{ id: string }>('POST', '/connections', body)).id;
  };
  const contestants = { 'four at a time': await connection(4), 'one after the other': await connection(1) };
  const times: Record<string, number[]> = { 'four at a time': [], 'one after the other': [] };
  // The first run of a service also loads its modules.
  await runToEnd(service, contestants['four at a time']);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, id] of Object.entries(contestants)) times[name]?.push((await runToEnd(service, id)).seconds);
  }
  for (const [name, seconds] of Object.entries(times)) {
    console.log(
      `${name.padEnd(20)} ${median(seconds).toFixed(2)} s   (${seconds.map((one) => one.toFixed(2)).join(' ')})`,
    );
  }
  const ratio = median(times['one after the other'] ?? []) / median(times['four at a time'] ?? []);
  console.log(`${ratio >= GOAL ? 'reached' : 'MISSED '} ${ratio.toFixed(2)} times as fast, goal ${GOAL}`);
} finally {
  await service.stop();
  await server.stop(true);
}
