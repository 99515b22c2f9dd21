/** `bun tests/bench/latency.ts [runs]`: from POST …/run to the first row read, and to `succeeded`, for a run of ten rows. */
import { startCluster } from './cluster.ts';
import { untilQuiet } from './quiet.ts';
import { median, record } from './report.ts';
import { runToEnd, startService } from './service.ts';

const RUNS = Number(process.argv[2] ?? 20);
const cluster = await startCluster();
const service = await startService();
try {
  cluster.psql('src', `create table ten as select i as id, 'x' || i as note from generate_series(1, 10) i`);
  const { host, port, username, password } = cluster;
  const end = async (connector_type: string, database: string) => {
    const parameters = { host, port, database, username, password, ssl_mode: 'disable' };
    const body = { name: connector_type, connector_type, connector_name: 'postgres', parameters };
    return (await service.call<{ id: string }>('POST', '/account_connectors', body)).id;
  };
  const connection = await service.call<{ id: string }>('POST', '/connections', {
    name: 'ten rows',
    source_id: await end('source', 'src'),
    destination_id: await end('destination', 'dst'),
    streams: [{ name: 'ten', sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' }],
  });
  const firstRow: number[] = [];
  const whole: number[] = [];
  await untilQuiet();
  for (let n = 0; n < RUNS; n += 1) {
    const posted = Date.now();
    const { run, seconds } = await runToEnd(service, connection.id);
    whole.push(seconds * 1000);
    firstRow.push((await firstRequestAfter(run.id)) - posted);
  }
  const show = (values: number[]) =>
    `${median(values).toFixed(0)} ms (${values.map((one) => one.toFixed(0)).join(' ')})`;
  const tell = (what: string, values: number[], goal: number) =>
    console.log(
      `${median(values) <= goal ? 'reached' : 'MISSED '} ${what}, median of ${RUNS}: ${show(values)}, goal ${goal}`,
    );
  tell('POST to first row read', firstRow, 60);
  tell('POST to succeeded', whole, 60);
  record({ title: 'latency', figures: { first_row_ms: median(firstRow), succeeded_ms: median(whole) } });
} finally {
  await service.stop();
  await cluster.stop();
}

/** Start and duration of the source's COPY, from the network log. */
async function firstRequestAfter(run_id: string): Promise<number> {
  const answer = await fetch(`${service.url}/connection_runs/${run_id}/network_logs?connector_type=source`, {
    headers: { authorization: `Bearer ${service.api_key}` },
  });
  const text = await new Response(answer.body?.pipeThrough(new DecompressionStream('gzip'))).text();
  const entries = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const copy = entries.find((entry) => entry.request.method === 'COPY');
  if (!copy) throw new Error('the source made no COPY');
  return Date.parse(copy.timestamp) + copy.duration_ms;
}
