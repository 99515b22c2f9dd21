/**
 * `bun tests/bench/two-workers.ts [runs] [rounds]`: many small runs on one queue, from the first POST …/run to the
 * last `succeeded`, with one worker process and with two. Each run reads ten rows of a server that answers after
 * half a second, so that a run waits and does not compute. Needs Debian's postgresql-15.
 */
import postgres from 'postgres';
import { startCluster } from './cluster.ts';
import { median } from './report.ts';
import { startService } from './service.ts';

const RUNS = Number(process.argv[2] ?? 200);
const ROUNDS = Number(process.argv[3] ?? 3);
const GOAL = 1.7;
const ANSWER_MS = 500;

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch() {
    await Bun.sleep(ANSWER_MS);
    return Response.json(Array.from({ length: 10 }, (_, id) => ({ id, name: `Name ${id}` })));
  },
});
const cluster = await startCluster();
cluster.psql('postgres', 'create database control');
const service = await startService({
  DATABASE_URL: cluster.url('control'),
  EGRESS_ALLOW: `127.0.0.1:${server.port}`,
});
const control = postgres(cluster.url('control'), { max: 1 });
try {
  const connections = await makeConnections();
  await inAll(connections.slice(0, 8));
  const times: Record<string, number[]> = { 'one worker': [], 'two workers': [] };
  const measure = async (way: string) => {
    const second = way === 'two workers' ? await service.startWorker() : null;
    times[way]?.push(await inAll(connections));
    await second?.stop();
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    const ways = Object.keys(times);
    for (const way of round % 2 ? ways.toReversed() : ways) await measure(way);
  }
  console.log(`\n${RUNS} runs of one request of ${ANSWER_MS} ms each, medians`);
  for (const [way, seconds] of Object.entries(times)) {
    const all = seconds.map((one) => one.toFixed(2)).join(' ');
    console.log(`  ${way.padEnd(12)} ${median(seconds).toFixed(2)} s   (${all})`);
  }
  const ratio = median(times['one worker'] ?? []) / median(times['two workers'] ?? []);
  console.log(`  ${ratio >= GOAL ? 'reached' : 'MISSED '} two are ${ratio.toFixed(2)} times as fast, goal ${GOAL}`);
} finally {
  await control.end();
  await service.stop();
  await cluster.stop();
  await server.stop(true);
}

/** Seconds from the first POST to the end of the last run, by the service's own record. */
async function inAll(connections: string[]): Promise<number> {
  const posted = Date.now();
  const waiting = [...connections];
  const post = async () => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop())
      await service.call('POST', `/connections/${id}/run`);
  };
  await Promise.all(Array.from({ length: 4 }, post));
  for (;;) {
    const [found] = await control`
      select count(*) filter (where finished_at is null)::int as live, max(finished_at) as last,
             count(*) filter (where finished_at is not null and status <> 'succeeded')::int as bad
        from connection_runs`;
    if (found?.bad > 0) throw new Error(`${found?.bad} runs did not succeed`);
    if (found?.live === 0) return (found.last.getTime() - posted) / 1000;
    await Bun.sleep(250);
  }
}

async function makeConnections(): Promise<string[]> {
  const definition = JSON.stringify({
    base_url: server.url.origin,
    streams: [
      {
        name: 'items',
        request: { path: '/items' },
        schema: { properties: { id: { type: 'integer' }, name: { type: 'string' } } },
      },
    ],
  });
  const end = async (connector_type: string, connector_name: string, parameters: object) => {
    const body = { name: connector_name, connector_type, connector_name, parameters };
    return (await service.call<{ id: string }>('POST', '/account_connectors', body)).id;
  };
  const source_id = await end('source', 'http_api', { definition });
  const destination_id = await end('destination', 'file', { path: 'out', format: 'csv' });
  const made: string[] = [];
  for (let n = 0; n < RUNS; n += 1) {
    const { id } = await service.call<{ id: string }>('POST', '/connections', {
      name: `small ${n}`,
      source_id,
      destination_id,
      table_prefix: `c${n}_`,
      streams: [{ name: 'items', sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' }],
    });
    made.push(id);
  }
  return made;
}
