/**
 * `bun tests/bench/memory-wide.ts [megabytes]`: peak memory of the worker process for the same bytes as rows of 1 kB, of
 * 100 kB and with a cell of 5 MB, on each lane, each run in a service of its own.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startCluster } from './cluster.ts';
import { runToEnd, startService } from './service.ts';

const BYTES = Number(process.argv[2] ?? 200) * 1_000_000;
const WIDTHS = { '1 kB': 1_000, '100 kB': 100_000, '5 MB': 5_000_000 };
/** A cell is held as what came, as text and as what goes; the engines of files have a limit of their own beside that. */
const GOALS = { database: 300, file: 900 };
const HASHED = [{ path: ['id'], masking: 'hash_sha256_salted' }];

type End = [connector: string, parameters: object];
interface Lane {
  from: End;
  to: End;
  fields: object[];
  goal: number;
}

const cluster = await startCluster();
const { host, port, username, password } = cluster;
const database = (name: string): End => [
  'postgres',
  { host, port, database: name, username, password, ssl_mode: 'disable' },
];
const files = (format: string): End => ['file', { path: `out-${format}`, format }];
const [src, dst, csv]: End[] = [database('src'), database('dst'), ['file', { path: 't.csv' }]];
const LANES: Record<string, Lane> = {
  'pg to pg, bytes': { from: src!, to: dst!, fields: [], goal: GOALS.database },
  'pg to pg, rows': { from: src!, to: dst!, fields: HASHED, goal: GOALS.database },
  'csv to pg, bytes': { from: csv!, to: dst!, fields: [], goal: GOALS.database },
  'csv to pg, rows': { from: csv!, to: dst!, fields: HASHED, goal: GOALS.database },
  'pg to jsonl': { from: src!, to: files('jsonl'), fields: HASHED, goal: GOALS.database },
  'pg to parquet': { from: src!, to: files('parquet'), fields: HASHED, goal: GOALS.file },
};
try {
  const peaks: Record<string, number[]> = {};
  for (const width of Object.values(WIDTHS)) {
    // Texts of hexadecimal digits, which PostgreSQL does not store compressed here.
    cluster.psql(
      'src',
      `drop table if exists t; create table t (id bigint, note text); alter table t alter note set storage external;
       insert into t select i, left(repeat(md5(i::text), ${Math.ceil(width / 32)}), ${width})
         from generate_series(1, ${Math.ceil(BYTES / width)}) i`,
    );
    for (const [name, lane] of Object.entries(LANES)) (peaks[name] ??= []).push(await peakOf(lane));
  }
  for (const [name, found] of Object.entries(peaks)) {
    const { goal } = LANES[name]!;
    const shown = Object.keys(WIDTHS).map((width, at) => `${width} ${found[at]} MB`);
    console.log(
      `${Math.max(...found) < goal ? 'reached' : 'MISSED '} ${name}: ${shown.join(', ')} (goal below ${goal} MB)`,
    );
  }
} finally {
  await cluster.stop();
}

async function peakOf({ from, to, fields }: Lane): Promise<number> {
  const service = await startService();
  try {
    const folder = join(service.data_dir, 'files');
    mkdirSync(folder, { recursive: true });
    if (from === csv) cluster.time(`psql -qX $SRC -c "\\copy t to '${join(folder, 't.csv')}' (format csv, header)"`);
    cluster.psql('dst', 'drop table if exists wide_t');
    const end = async (connector_type: string, [connector_name, parameters]: End) => {
      const body = { name: connector_type, connector_type, connector_name, parameters };
      return (await service.call<{ id: string }>('POST', '/account_connectors', body)).id;
    };
    const stream = {
      name: 't',
      sync_mode: 'full_refresh',
      destination_sync_mode: 'append',
      destination_table: 'wide_t',
    };
    const connection = await service.call<{ id: string }>('POST', '/connections', {
      name: 'wide',
      source_id: await end('source', from),
      destination_id: await end('destination', to),
      streams: [{ ...stream, fields }],
    });
    await runToEnd(service, connection.id);
    return service.workerPeakMb();
  } finally {
    await service.stop();
  }
}
