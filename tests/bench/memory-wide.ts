/**
 * `bun tests/bench/memory-wide.ts [megabytes] [lane]`: peak memory of the worker process for the same bytes as rows of
 * 1 kB, of 100 kB and with a cell of 5 MB, on each lane (or those whose name contains `lane`), each run in a
 * separate service. Needs Debian's postgresql-15 and mariadb-server.
 */
import { startMariaDb } from '../support/mariadb.ts';
import { startCluster } from './cluster.ts';
import { scratchFolder } from './scratch.ts';
import { runToEnd, startService, untilDiscovered } from './service.ts';
import { giveFiles, type Kind, makeWide } from './wide-rows.ts';

const BYTES = Number(process.argv[2] ?? 200) * 1_000_000;
const WANTED = process.argv[3] ?? '';
const WIDTHS = { '1 kB': 1_000, '100 kB': 100_000, '5 MB': 5_000_000 };
/** A cell is held as received, as text and as sent; the engines of files have a separate limit. */
const GOALS = { database: 300, file: 400 };
/** Only the ID is read: the byte lane with lines parsed. */
const HASHED = { fields: [{ path: ['id'], masking: 'hash_sha256_salted' }] };
/** Bytes have no state, so this is the row lane. */
const ROWS = { sync_mode: 'incremental' };

type End = [connector: string, parameters: object];
interface Lane {
  from: Kind;
  to: End;
  stream?: object;
  goal?: number;
}

const cluster = await startCluster();
const mariadb = await startMariaDb(['--max-allowed-packet=64M', '--innodb-log-file-size=512M']);
await mariadb.sql('create database wide');
const folder = scratchFolder();
const access = ({ host, port, username, password }: typeof cluster | typeof mariadb) => ({
  host,
  port,
  username,
  password,
  ssl_mode: 'disable',
});
const SOURCES: Record<Kind, End> = {
  postgres: ['postgres', { ...access(cluster), database: 'src' }],
  csv: ['file', { path: 't.csv' }],
  jsonl: ['file', { path: 't.jsonl' }],
  sqlite: ['sqlite', { path: 't.sqlite' }],
  mysql: ['mysql', { ...access(mariadb), database: 'wide' }],
  duckdb: ['duckdb', { path: 't.duckdb' }],
};
const pg: End = ['postgres', { ...access(cluster), database: 'dst' }];
const duckdb: End = ['duckdb', { path: 'out.duckdb' }];
const files = (format: string): End => ['file', { path: `out-${format}`, format }];
const LANES: Record<string, Lane> = {
  'pg to pg, bytes': { from: 'postgres', to: pg },
  'pg to pg, masked bytes': { from: 'postgres', to: pg, stream: HASHED },
  'csv to pg, bytes': { from: 'csv', to: pg },
  'csv to pg, masked bytes': { from: 'csv', to: pg, stream: HASHED },
  'csv to pg, rows': { from: 'csv', to: pg, stream: ROWS },
  'jsonl to pg': { from: 'jsonl', to: pg },
  'jsonl to pg, incremental': { from: 'jsonl', to: pg, stream: ROWS },
  'sqlite to pg': { from: 'sqlite', to: pg },
  'mysql to pg, bytes': { from: 'mysql', to: pg },
  'mysql to mysql': { from: 'mysql', to: SOURCES.mysql, stream: HASHED },
  'pg to mysql': { from: 'postgres', to: SOURCES.mysql },
  'duckdb to pg': { from: 'duckdb', to: pg, goal: GOALS.file },
  'pg to duckdb': { from: 'postgres', to: duckdb, goal: GOALS.file },
  'pg to jsonl': { from: 'postgres', to: files('jsonl'), stream: HASHED },
  'pg to parquet, bytes': { from: 'postgres', to: files('parquet'), goal: GOALS.file },
  'pg to parquet, masked bytes': { from: 'postgres', to: files('parquet'), stream: HASHED, goal: GOALS.file },
};
const lanes = Object.entries(LANES).filter(([name]) => name.includes(WANTED));
const kinds = new Set(lanes.map(([, { from }]) => from));
try {
  const peaks: Record<string, (number | string)[]> = {};
  for (const width of Object.values(WIDTHS)) {
    await makeWide({ cluster, mariadb, folder }, kinds, { width, rows: Math.ceil(BYTES / width) });
    for (const [name, lane] of lanes) (peaks[name] ??= []).push(await peakOf(lane).catch(String));
  }
  for (const [name, found] of Object.entries(peaks)) {
    const goal = LANES[name]!.goal ?? GOALS.database;
    const shown = Object.keys(WIDTHS).map(
      (width, at) => `${width} ${found[at]}${typeof found[at] === 'number' ? ' MB' : ''}`,
    );
    const isReached = found.every((peak) => typeof peak === 'number' && peak < goal);
    console.log(`${isReached ? 'reached' : 'MISSED '} ${name}: ${shown.join(', ')} (goal below ${goal} MB)`);
  }
} finally {
  await mariadb.stop();
  await cluster.stop();
}

async function peakOf({ from, to, stream }: Lane): Promise<number> {
  const service = await startService();
  try {
    giveFiles(folder, service.data_dir);
    cluster.psql('dst', 'drop table if exists wide_t');
    await mariadb.sql('drop table if exists wide_t', 'wide');
    const end = async (connector_type: string, [connector_name, parameters]: End) => {
      const body = { name: connector_type, connector_type, connector_name, parameters };
      return (await service.call<{ id: string }>('POST', '/account_connectors', body)).id;
    };
    const whole = {
      name: 't',
      sync_mode: 'full_refresh',
      destination_sync_mode: 'append',
      destination_table: 'wide_t',
    };
    const source_id = await end('source', SOURCES[from]);
    await untilDiscovered(service, source_id);
    const connection = await service.call<{ id: string }>('POST', '/connections', {
      name: 'wide',
      source_id,
      destination_id: await end('destination', to),
      streams: [{ ...whole, ...stream }],
    });
    await runToEnd(service, connection.id);
    return service.workerPeakMb();
  } finally {
    await service.stop();
  }
}
