/** `bun tests/bench/csv-to-pg.ts [rows] [rounds]`: whole runs of a CSV file into PostgreSQL, against psql \copy of it. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startCluster } from './cluster.ts';
import { quietRounds } from './quiet.ts';
import { report, type Times } from './report.ts';
import { connectFile, runToEnd, startService } from './service.ts';

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
  const connection = await connectFile(service, cluster, { path: 'events.csv', stream: 'events' });
  const times: Times = { 'psql \\copy': [], run: [] };
  for await (const _ of quietRounds(ROUNDS)) {
    cluster.psql('dst', `drop table if exists copy_t; create table copy_t (${COLUMNS})`);
    times['psql \\copy']?.push(cluster.time(`psql -qX $DST -c "\\copy copy_t from '${file}' (format csv, header)"`));
    cluster.psql('dst', 'drop table if exists run_t');
    times.run?.push((await runToEnd(service, connection)).seconds);
  }
  report(`CSV (${Math.round(Bun.file(file).size / 1e6)} MB) to PostgreSQL`, ROWS, times, [['run', 'psql \\copy', 0.9]]);
  console.log(`  worker's peak memory: ${service.workerPeakMb()} MB`);
} finally {
  await service.stop();
  await cluster.stop();
}
