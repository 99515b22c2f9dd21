/**
 * `bun tests/bench/parquet.ts [rows] [rounds]`: Parquet into PostgreSQL and back, against psql \copy and DuckDB's COPY
 * of the same rows as CSV.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { startCluster } from './cluster.ts';
import { quietRounds } from './quiet.ts';
import { report, type Times } from './report.ts';
import { runToEnd, type Service, startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const ROUNDS = Number(process.argv[3] ?? 5);
const COLUMNS =
  'id bigint, kind bigint, note text, amount numeric(18,2), happened timestamptz, payload text, flag boolean, score double precision';

const cluster = await startCluster();
const service = await startService();
const duck = await (await DuckDBInstance.create(':memory:')).connect();
try {
  await duck.run("set TimeZone = 'UTC'");
  const folder = join(service.data_dir, 'files');
  mkdirSync(folder, { recursive: true });
  const csv = join(folder, 'events.csv');
  const parquet = join(folder, 'events.parquet');
  cluster.psql('src', `create table events (${COLUMNS})`);
  cluster.psql(
    'src',
    `insert into events select i, i % 100, 'note ' || md5(i::text) || ', "quoted"', i * 1.25,
      timestamptz '2024-01-01 00:00+00' + i * interval '1 second',
      jsonb_build_object('i', i, 'tags', jsonb_build_array('a', i % 10))::text, i % 3 = 0, i / 8.0
      from generate_series(1, ${ROWS}) i`,
  );
  cluster.psql('src', 'vacuum analyze events');
  cluster.time(`psql -qX $SRC -c "copy events to stdout (format csv, header)" > ${csv}`);
  const types = `{id: 'BIGINT', kind: 'BIGINT', note: 'VARCHAR', amount: 'DECIMAL(18,2)', happened: 'TIMESTAMPTZ',
    payload: 'VARCHAR', flag: 'BOOLEAN', score: 'DOUBLE'}`;
  const copy = (path: string) =>
    duck.run(
      `COPY (FROM read_csv('${csv}', header = true, columns = ${types})) TO '${path}' (FORMAT parquet, COMPRESSION zstd)`,
    );
  await copy(parquet);
  const { host, port, username, password } = cluster;
  const database = (name: string) => ({ host, port, database: name, username, password, ssl_mode: 'disable' });
  const files = { location: 'local', path: 'events.parquet' };
  const into = await connectionOf(service, 'parquet to pg', {
    source: { name: 'file', parameters: files },
    destination: { name: 'postgres', parameters: database('dst') },
    stream: { name: 'events', destination_table: 'run_t' },
  });
  const out = await connectionOf(service, 'pg to parquet', {
    source: { name: 'postgres', parameters: database('src') },
    destination: { name: 'file', parameters: { path: 'out', format: 'parquet' } },
    stream: { name: 'events', namespace: 'public', destination_table: 'run_t' },
  });
  const times: Times = { 'psql \\copy of CSV': [], 'Parquet to pg': [] };
  const back: Times = { 'DuckDB COPY from CSV': [], 'pg to Parquet': [] };
  for await (const _ of quietRounds(ROUNDS)) {
    cluster.psql('dst', `drop table if exists copy_t; create table copy_t (${COLUMNS})`);
    times['psql \\copy of CSV']?.push(
      cluster.time(`psql -qX $DST -c "\\copy copy_t from '${csv}' (format csv, header)"`),
    );
    cluster.psql('dst', 'drop table if exists run_t');
    times['Parquet to pg']?.push((await runToEnd(service, into)).seconds);
    const begun = performance.now();
    await copy(join(folder, 'peer.parquet'));
    back['DuckDB COPY from CSV']?.push((performance.now() - begun) / 1000);
    rmSync(join(folder, 'out'), { recursive: true, force: true });
    back['pg to Parquet']?.push((await runToEnd(service, out)).seconds);
  }
  const [ours, theirs] = [join(folder, 'out', 'run_t', '*.parquet'), parquet].map(
    (path) => `FROM read_parquet('${path}')`,
  );
  const same = await duck.runAndReadAll(
    `SELECT count(*)::INT FROM ((${ours} EXCEPT ALL ${theirs}) UNION ALL (${theirs} EXCEPT ALL ${ours}))`,
  );
  console.log(`rows that differ: ${String(same.getRows()[0]?.[0])} of ${ROWS}`);
  const megabytes = Math.round(Bun.file(csv).size / 1e6);
  report(`Parquet (${megabytes} MB as CSV) to PostgreSQL`, ROWS, times, [['Parquet to pg', 'psql \\copy of CSV', 1.3]]);
  report(`PostgreSQL to Parquet`, ROWS, back, [['pg to Parquet', 'DuckDB COPY from CSV', 0.8]]);
  console.log(`  worker's peak memory: ${service.workerPeakMb()} MB`);
} finally {
  await service.stop();
  await cluster.stop();
}

interface Side {
  name: string;
  parameters: object;
}

async function connectionOf(
  { call }: Service,
  name: string,
  { source, destination, stream }: { source: Side; destination: Side; stream: object },
): Promise<string> {
  const made = await Promise.all(
    [source, destination].map((side, at) =>
      call<{ id: string }>('POST', '/account_connectors', {
        name: `${name} ${at}`,
        connector_type: at === 0 ? 'source' : 'destination',
        connector_name: side.name,
        parameters: side.parameters,
      }),
    ),
  );
  const body = {
    name,
    source_id: made[0]?.id,
    destination_id: made[1]?.id,
    streams: [{ sync_mode: 'full_refresh', destination_sync_mode: 'append', ...stream }],
  };
  return (await call<{ id: string }>('POST', '/connections', body)).id;
}
