/**
 * `bun tests/bench/ranges.ts [rows] [rounds]`: whole runs of a large table read by one connection and by two
 * (`parallel_reads`), through a proxy that limits the rate of each connection, and without it. Needs Debian's
 * postgresql-15.
 */
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { startCluster } from './cluster.ts';
import { report, type Times } from './report.ts';
import { runToEnd, startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const ROUNDS = Number(process.argv[3] ?? 5);
const BYTES_PER_SECOND = 10_000_000;

const cluster = await startCluster();
const service = await startService();
const proxy = await startTcpProxy(cluster, { bytes_per_second: BYTES_PER_SECOND });
try {
  cluster.psql(
    'src',
    `create table events as select i::bigint as id, (i % 100)::int as kind, 'note ' || md5(i::text) || repeat('x', (i % 200)::int) as note,
       (i * 1.2345)::numeric(14,4) as amount, now() - i * interval '1 second' as happened from generate_series(1, ${ROWS}) i`,
  );
  cluster.psql('src', 'vacuum analyze events');
  const ways = {
    'limited, one connection': await pipeline(proxy.port, 1),
    'limited, two connections': await pipeline(proxy.port, 2),
    'one connection': await pipeline(cluster.port, 1),
    'two connections': await pipeline(cluster.port, 2),
  };
  const times: Times = {};
  for (let round = 0; round < ROUNDS; round += 1) {
    const entries = Object.entries(ways);
    // The order alternates, since the rounds with limited rates give the disk a pause.
    for (const [name, id] of round % 2 ? entries.toReversed() : entries) {
      cluster.psql('dst', 'drop table if exists events');
      cluster.psql('dst', 'checkpoint');
      const { run, seconds } = await runToEnd(service, id);
      if (run.rows_loaded !== ROWS) throw new Error(`${name}: ${run.rows_loaded} rows`);
      (times[name] ??= []).push(seconds);
    }
  }
  report(`A table read in ranges, ${BYTES_PER_SECOND / 1e6} MB/s a connection where limited`, ROWS, times, [
    ['limited, two connections', 'limited, one connection', 1.8],
    ['two connections', 'one connection', 0.95],
  ]);
  console.log(`  worker's peak memory: ${service.workerPeakMb()} MB`);
} finally {
  await service.stop();
  proxy.stop();
  await cluster.stop();
}

async function pipeline(port: number, parallel_reads: number): Promise<string> {
  const { host, username, password } = cluster;
  const end = async (connector_type: string, parameters: object) =>
    service.call<{ id: string }>('POST', '/account_connectors', {
      name: `${connector_type} ${Bun.randomUUIDv7()}`,
      connector_type,
      connector_name: 'postgres',
      parameters: { host, username, password, ssl_mode: 'disable', ...parameters },
    });
  const { id: source_id } = await end('source', { port, database: 'src', parallel_reads });
  const { id: destination_id } = await end('destination', { port: cluster.port, database: 'dst' });
  const made = await service.call<{ id: string }>('POST', '/connections', {
    name: `${port} ${parallel_reads}`,
    source_id,
    destination_id,
    streams: [{ name: 'events', sync_mode: 'full_refresh', destination_sync_mode: 'append' }],
  });
  return made.id;
}
