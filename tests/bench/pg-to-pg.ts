/**
 * `bun tests/bench/pg-to-pg.ts [rows] [rounds]`: whole runs from POST …/run to `succeeded`, against psql pipes and
 * pg_dump on the same cluster in the same run. Needs Debian's postgresql-15 (psql, pg_dump).
 */
import { type Cluster, startCluster } from './cluster.ts';
import { quietRounds } from './quiet.ts';
import { report, type Times } from './report.ts';
import { runToEnd, type Service, startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const ROUNDS = Number(process.argv[3] ?? 5);
const TABLE = 'events';
const COLUMNS = `id bigint, kind integer, note text, amount numeric(14,4), happened timestamptz, payload jsonb,
  flag boolean, token uuid, score float8, raw bytea`;

const cluster = await startCluster();
const service = await startService();
try {
  prepare(cluster);
  const pipelines = {
    'run: append, no key': await connect('append', 'append_t', {}),
    'run: full refresh, key, swap': await connect('overwrite', 'refresh_t', { primary_key: [['id']] }),
    'run: row lane, masked and renamed': await connect('append', 'masked_t', {
      fields: [
        { path: ['note'], masking: 'hash_sha256_salted' },
        { path: ['kind'], destination_name: 'category' },
      ],
    }),
  };
  const copy = (format: string, table: string) =>
    `psql -qX $SRC -c "copy ${TABLE} to stdout (format ${format})" | psql -qX $DST -c "copy ${table} from stdin (format ${format})"`;
  const times: Times = {};
  const note = (name: string, seconds: number) => {
    (times[name] ??= []).push(seconds);
  };
  for await (const _ of quietRounds(ROUNDS)) {
    fresh('pipe_t', '');
    note('psql | psql binary', cluster.time(copy('binary', 'pipe_t')));
    cluster.psql('dst', 'drop table if exists append_t');
    note('run: append, no key', (await runToEnd(service, pipelines['run: append, no key'])).seconds);
    fresh('pipe_t', ', primary key (id)');
    note('psql | psql binary, keyed', cluster.time(copy('binary', 'pipe_t')));
    const refresh = pipelines['run: full refresh, key, swap'];
    note('run: full refresh, key, swap', (await runToEnd(service, refresh)).seconds);
    fresh('pipe_t', '');
    note('psql | psql text', cluster.time(copy('text', 'pipe_t')));
    cluster.psql('dst', 'drop table if exists masked_t');
    const masked = pipelines['run: row lane, masked and renamed'];
    note('run: row lane, masked and renamed', (await runToEnd(service, masked)).seconds);
    cluster.psql('dst', `drop table if exists ${TABLE}`);
    note('pg_dump | psql', cluster.time(`pg_dump -t ${TABLE} $SRC | psql -qX $DST > /dev/null`));
  }
  report('PostgreSQL to PostgreSQL', ROWS, times, [
    ['run: append, no key', 'psql | psql binary', 0.9],
    ['run: full refresh, key, swap', 'psql | psql binary, keyed', 0.75],
    ['run: row lane, masked and renamed', 'psql | psql text', 0.8],
    ['run: append, no key', 'pg_dump | psql', 1],
  ]);
  console.log(`  worker's peak memory: ${service.workerPeakMb()} MB`);
} finally {
  await service.stop();
  await cluster.stop();
}

function prepare({ psql }: Cluster): void {
  psql('src', `create table ${TABLE} (${COLUMNS}, primary key (id))`);
  psql(
    'src',
    `insert into ${TABLE} select i, i % 100, 'note ' || md5(i::text) || repeat('ü', i % 7), i * 1.2345,
      timestamptz '2024-01-01 00:00+00' + i * interval '1.000001 seconds',
      jsonb_build_object('i', i, 'tags', jsonb_build_array('a', 'b"c', i % 10)), i % 3 = 0, gen_random_uuid(),
      i / 7.0, decode(md5(i::text), 'hex') from generate_series(1, ${ROWS}) i`,
  );
  psql('src', `vacuum analyze ${TABLE}`);
}

function fresh(table: string, key: string): void {
  cluster.psql('dst', `drop table if exists ${table}; create table ${table} (${COLUMNS}${key})`);
}

async function connect(mode: string, table: string, stream: Record<string, unknown>): Promise<string> {
  const ends = await Promise.all([
    endpoint(service, 'source', 'src', table),
    endpoint(service, 'destination', 'dst', table),
  ]);
  const [source_id, destination_id] = ends;
  const made = await service.call<{ id: string }>('POST', '/connections', {
    name: table,
    source_id,
    destination_id,
    streams: [
      { name: TABLE, sync_mode: 'full_refresh', destination_sync_mode: mode, destination_table: table, ...stream },
    ],
  });
  return made.id;
}

async function endpoint(to: Service, connector_type: string, database: string, name: string): Promise<string> {
  const { host, port, username, password } = cluster;
  const made = await to.call<{ id: string; status: string }>('POST', '/account_connectors', {
    name: `${name} ${database}`,
    connector_type,
    connector_name: 'postgres',
    parameters: { host, port, database, username, password, ssl_mode: 'disable' },
  });
  if (made.status !== 'active') throw new Error(`${connector_type} is ${made.status}`);
  return made.id;
}
