/**
 * `bun tests/bench/sent-rows.ts [rows] [changed]`: a table of PostgreSQL sent to a service over HTTP by full refreshes
 * with `append_dedup`: all rows at first, none without changes, and then those that were changed. Counts the rows that
 * the service receives. Needs Debian's postgresql-15.
 */
import { startCluster } from './cluster.ts';
import { untilQuiet } from './quiet.ts';
import { record, verdict } from './report.ts';
import { runToEnd, startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const CHANGED = Number(process.argv[3] ?? 100);
/** Of rows that changed, how many may be sent. */
const GOAL = 1.1;

let received = 0;
let requests = 0;
const receiver = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    if (request.method === 'POST') {
      received += ((await request.json()) as unknown[]).length;
      requests += 1;
    }
    return Response.json({});
  },
});
const cluster = await startCluster();
const service = await startService({ EGRESS_ALLOW: `127.0.0.1:${receiver.port}` });
try {
  cluster.psql('src', 'create table users (id bigint primary key, email text, score numeric, joined timestamptz)');
  cluster.psql(
    'src',
    `insert into users select i, 'user' || i || '@example.com', i * 1.5, timestamptz '2024-01-01 00:00+00' + i * interval '1 second'
       from generate_series(1, ${ROWS}) i`,
  );
  cluster.psql('src', 'vacuum analyze users');
  const { host, port, username, password } = cluster;
  const connection = await connect(
    { name: 'postgres', parameters: { host, port, database: 'src', username, password, ssl_mode: 'disable' } },
    { name: 'http', parameters: { url: `http://127.0.0.1:${receiver.port}/{{ table }}`, format: 'array' } },
  );
  await untilQuiet();
  const first = await measured('all rows');
  verdict(first === ROWS, `${first} of ${ROWS} rows sent at first`);
  const unchanged = await measured('no changes');
  verdict(unchanged === 0, `${unchanged} rows sent without changes`);
  cluster.psql('src', `update users set score = score + 1 where id % ${Math.floor(ROWS / CHANGED)} = 0`);
  const changed = await measured(`${CHANGED} changed`);
  verdict(changed >= CHANGED && changed <= CHANGED * GOAL, `${changed} rows sent of ${CHANGED} that changed`);
  console.log(`  worker's peak memory: ${service.workerPeakMb()} MB`);
  record({ title: 'rows sent', rows: ROWS, figures: { changed, unchanged, peak_mb: service.workerPeakMb() } });

  async function measured(what: string): Promise<number> {
    [received, requests] = [0, 0];
    const { seconds } = await runToEnd(service, connection);
    console.log(`  ${what}: ${received} rows in ${requests} requests, ${seconds.toFixed(1)} s`);
    return received;
  }
} finally {
  await service.stop();
  await cluster.stop();
  await receiver.stop(true);
}

interface End {
  name: string;
  parameters: object;
}

async function connect(source: End, destination: End): Promise<string> {
  const end = async (connector_type: string, { name, parameters }: End) => {
    const body = { name, connector_type, connector_name: name, parameters };
    return (await service.call<{ id: string }>('POST', '/account_connectors', body)).id;
  };
  const made = await service.call<{ id: string }>('POST', '/connections', {
    name: 'users',
    source_id: await end('source', source),
    destination_id: await end('destination', destination),
    streams: [
      { name: 'users', sync_mode: 'full_refresh', destination_sync_mode: 'append_dedup', primary_key: [['id']] },
    ],
  });
  return made.id;
}
