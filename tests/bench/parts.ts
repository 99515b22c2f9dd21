/**
 * `bun tests/bench/parts.ts [megabytes] [rounds]`: full refreshes of a table, and appends to one that exists, over up to
 * four connections at each side against one, through proxies that limit each connection to 20 MB/s at both sides, and
 * without limits. Needs Debian's
 * postgresql-15.
 */
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { startCluster } from './cluster.ts';
import { quietRounds } from './quiet.ts';
import { report, type Times } from './report.ts';
import { runToEnd, startService } from './service.ts';

const MEGABYTES = Number(process.argv[2] ?? 800);
const ROUNDS = Number(process.argv[3] ?? 3);
const RATE = 20_000_000;
const PARTS = 4;
const ROWS = MEGABYTES * 1000;
const COLUMNS = 'id bigint, kind int, note text, amount numeric(14,4), happened timestamptz';

const cluster = await startCluster();
const service = await startService();
const source = await startTcpProxy(cluster, { bytes_per_second: RATE });
const destination = await startTcpProxy(cluster, { upload_bytes_per_second: RATE });
try {
  // Some 1 kB a row, so that lines are the limit and not processors.
  cluster.psql(
    'src',
    `create table events as select i::bigint as id, (i % 100)::int as kind, repeat(md5(i::text), 29) as note,
       (i * 1.2345)::numeric(14,4) as amount, now() - i * interval '1 second' as happened from generate_series(1, ${ROWS}) i`,
  );
  cluster.psql('src', 'vacuum analyze events');
  const limited = { read: source.port, write: destination.port };
  const direct = { read: cluster.port, write: cluster.port };
  const ways = {
    'limited, one connection': await pipeline('limited_one', limited, 1),
    'limited, four connections': await pipeline('limited_four', limited, PARTS),
    'one connection': await pipeline('one', direct, 1),
    'four connections': await pipeline('four', direct, PARTS),
    'limited append, one connection': await pipeline('append_one', limited, 1, 'append'),
    'limited append, four connections': await pipeline('append_four', limited, PARTS, 'append'),
  };
  const times: Times = {};
  for await (const round of quietRounds(ROUNDS)) {
    const entries = Object.entries(ways);
    for (const [name, id] of round % 2 ? entries.toReversed() : entries) {
      const tables = 'limited_one, limited_four, one, four';
      cluster.psql('dst', `set client_min_messages = warning; drop table if exists ${tables}, append_one, append_four`);
      for (const table of ['append_one', 'append_four']) cluster.psql('dst', `create table ${table} (${COLUMNS})`);
      cluster.psql('dst', 'checkpoint');
      const { run, seconds } = await runToEnd(service, id);
      if (run.rows_loaded !== ROWS) throw new Error(`${name}: ${run.rows_loaded} rows`);
      (times[name] ??= []).push(seconds);
    }
  }
  report(`A table in parts, ${RATE / 1e6} MB/s a connection where limited`, ROWS, times, [
    ['limited, four connections', 'limited, one connection', 3.5],
    ['four connections', 'one connection', 0.95],
    ['limited append, four connections', 'limited append, one connection', 2.5],
  ]);
  console.log(`  worker's peak memory: ${service.workerPeakMb()} MB`);
} finally {
  await service.stop();
  source.stop();
  destination.stop();
  await cluster.stop();
}

async function pipeline(
  table: string,
  ports: { read: number; write: number },
  parts: number,
  destination_sync_mode = 'overwrite',
): Promise<string> {
  const { host, username, password } = cluster;
  const end = async (connector_type: string, parameters: object) =>
    service.call<{ id: string }>('POST', '/account_connectors', {
      name: `${connector_type} ${table}`,
      connector_type,
      connector_name: 'postgres',
      parameters: { host, username, password, ssl_mode: 'disable', ...parameters },
    });
  const { id: source_id } = await end('source', { port: ports.read, database: 'src', parallel_reads: parts });
  const written = { port: ports.write, database: 'dst', parallel_writes: parts };
  const { id: destination_id } = await end('destination', written);
  const made = await service.call<{ id: string }>('POST', '/connections', {
    name: table,
    source_id,
    destination_id,
    streams: [{ name: 'events', sync_mode: 'full_refresh', destination_sync_mode, destination_table: table }],
  });
  return made.id;
}
