/** `bun tests/bench/csv-to-pg.ts [rows] [rounds]`: whole runs of a CSV file into PostgreSQL, against psql \copy of it. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startCluster } from './cluster.ts';
import { quietRounds } from './quiet.ts';
import { report, type Times } from './report.ts';
import { runToEnd, startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const ROUNDS = Number(process.argv[3] ?? 5);
const COLUMNS =
  'id bigint, kind bigint, note text, amount numeric, happened timestamptz, payload text, flag boolean, score numeric';

const cluster = await startCluster();
const service = await startService();
try {
  const folder = join(service.data_dir, 'files');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'events.csv');
  cluster.time(
    `psql -qX $SRC -c "copy (select i as id, i % 100 as kind, 'note ' || md5(i::text) || ', \\"quoted\\"' as note,
      i * 1.25 as amount, timestamptz '2024-01-01 00:00+00' + i * interval '1 second' as happened,
      jsonb_build_object('i', i, 'tags', jsonb_build_array('a', i % 10)) as payload, i % 3 = 0 as flag, i / 8.0 as score
      from generate_series(1, ${ROWS}) i) to stdout (format csv, header)" > ${file}`,
  );
  const source = await service.call<{ id: string }>('POST', '/account_connectors', {
    name: 'csv',
    connector_type: 'source',
    connector_name: 'file',
    parameters: { path: 'events.csv' },
  });
  const { host, port, username, password } = cluster;
  const destination = await service.call<{ id: string }>('POST', '/account_connectors', {
    name: 'pg',
    connector_type: 'destination',
    connector_name: 'postgres',
    parameters: { host, port, database: 'dst', username, password, ssl_mode: 'disable' },
  });
  const connection = await service.call<{ id: string }>('POST', '/connections', {
    name: 'csv to pg',
    source_id: source.id,
    destination_id: destination.id,
    streams: [
      { name: 'events', sync_mode: 'full_refresh', destination_sync_mode: 'append', destination_table: 'run_t' },
    ],
  });
  const times: Times = { 'psql \\copy': [], run: [] };
  for await (const _ of quietRounds(ROUNDS)) {
    cluster.psql('dst', `drop table if exists copy_t; create table copy_t (${COLUMNS})`);
    times['psql \\copy']?.push(cluster.time(`psql -qX $DST -c "\\copy copy_t from '${file}' (format csv, header)"`));
    cluster.psql('dst', 'drop table if exists run_t');
    times.run?.push((await runToEnd(service, connection.id)).seconds);
  }
  report(`CSV (${Math.round(Bun.file(file).size / 1e6)} MB) to PostgreSQL`, ROWS, times, [['run', 'psql \\copy', 0.9]]);
  console.log(`  worker's peak memory: ${service.workerPeakMb()} MB`);
} finally {
  await service.stop();
  await cluster.stop();
}
