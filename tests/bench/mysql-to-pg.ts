/**
 * `bun tests/bench/mysql-to-pg.ts [rows] [rounds]`: whole runs from POST …/run to `succeeded`, against
 * `mysql --quick --batch` piped into `psql \copy` of the same rows in the same run, into PostgreSQL and into MySQL, and from
 * PostgreSQL against `psql` piped into `LOAD DATA LOCAL`.
 * Needs Debian's postgresql-15 and mariadb-server.
 */
import { startMariaDb } from '../support/mariadb.ts';
import { startCluster } from './cluster.ts';
import { quietRounds } from './quiet.ts';
import { report, type Times } from './report.ts';
import { runToEnd, startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const ROUNDS = Number(process.argv[3] ?? 5);
/** As a run makes them. */
const COLUMNS = `id bigint, kind bigint, note text, amount numeric, happened timestamptz, payload jsonb, flag bigint,
  token text, score numeric, raw bytea`;
const BACK_COLUMNS = `id bigint, kind bigint, note longtext, amount decimal(14,4), happened datetime(6), payload longtext,
  flag tinyint(1), token longtext, score double, raw longblob`;

const cluster = await startCluster();
const mariadb = await startMariaDb([
  '--innodb-buffer-pool-size=1G',
  '--innodb-log-file-size=1G',
  '--max-allowed-packet=64M',
]);
const service = await startService();
try {
  await prepare();
  const mysql = { ...access(mariadb), database: 'bench' };
  const source = await endpoint('source', 'mysql', mysql);
  const postgres = await endpoint('destination', 'postgres', { ...access(cluster), database: 'dst' });
  const fromPostgres = await endpoint('source', 'postgres', { ...access(cluster), database: 'dst' });
  const back = await endpoint('destination', 'mysql', mysql);
  const pipelines: Record<string, string> = {
    'run: append': await connect(source, postgres, {}),
    'run: row lane, hashed and salted': await connect(source, postgres, {
      destination_table: 'masked_t',
      fields: [{ path: ['raw'], masking: 'hash_sha256_salted' }],
    }),
    'run: PostgreSQL to MySQL, append': await connect(fromPostgres, back, {
      name: 'back_t',
      destination_table: 'from_pg',
    }),
    'run: mysql to mysql, overwrite': await connect(source, back, {
      destination_table: 'copy_t',
      destination_sync_mode: 'overwrite',
    }),
  };
  const read = `mysql --no-defaults --quick --batch -N -h127.0.0.1 -P${mariadb.port} -u${mariadb.username}`;
  process.env.MYSQL_PWD = mariadb.password;
  // \copy accepts batch output unchanged except NULL, which the rows do not have, and bytes, which are selected as text.
  const columns =
    "id, kind, note, amount, concat(happened, '+00'), payload, flag, token, score, concat('\\\\x', hex(raw))";
  const pipe = `${read} bench -e "set time_zone = '+00:00'; select ${columns.replaceAll('\\', '\\\\')} from events" | psql -qX $DST -c "\\copy pipe_t from stdin"`;
  const loaded = 'id, kind, note, amount, happened, payload, flag, token, score, @raw';
  const load = `load data local infile '/dev/stdin' into table pipe_t character set utf8mb4 (${loaded}) set raw = unhex(@raw)`;
  const selected =
    "id, kind, note, amount, happened at time zone 'UTC', payload, flag::int, token, score, encode(raw, 'hex')";
  const pipeBack = `psql -qX $DST -c "\\copy (select ${selected} from back_t) to stdout" | ${read} --local-infile bench -e "${load}"`;
  const times: Times = {};
  for await (const _ of quietRounds(ROUNDS)) {
    cluster.psql('dst', `drop table if exists pipe_t; create table pipe_t (${COLUMNS})`);
    (times['mysql | psql \\copy'] ??= []).push(cluster.time(pipe));
    cluster.psql('dst', 'drop table if exists append_t; drop table if exists masked_t');
    await mariadb.sql(`drop table if exists pipe_t, from_pg; create table pipe_t (${BACK_COLUMNS})`, 'bench');
    (times['psql | LOAD DATA'] ??= []).push(cluster.time(pipeBack));
    for (const [name, connection] of Object.entries(pipelines)) {
      (times[name] ??= []).push((await runToEnd(service, connection)).seconds);
    }
  }
  report('MySQL to PostgreSQL', ROWS, times, [
    ['run: append', 'mysql | psql \\copy', 1],
    ['run: PostgreSQL to MySQL, append', 'psql | LOAD DATA', 1],
  ]);
  console.log(`  worker's peak memory: ${service.workerPeakMb()} MB`);
} finally {
  await service.stop();
  await mariadb.stop();
  await cluster.stop();
}

async function prepare(): Promise<void> {
  cluster.psql(
    'dst',
    `create table back_t (id bigint, kind integer, note text, amount numeric(14,4), happened timestamptz, payload jsonb,
       flag boolean, token uuid, score float8, raw bytea);
     insert into back_t select n, n % 100, concat('note ', md5(n::text), repeat('ü', n % 7)), n * 1.2345,
       timestamptz '2024-01-01 00:00:00+00' + n * interval '1.000001 second',
       jsonb_build_object('i', n, 'tags', jsonb_build_array('a', 'b"c', n % 10)), n % 3 = 0, gen_random_uuid(), n / 7.0,
       decode(md5(n::text), 'hex') from generate_series(1, ${ROWS}) n;
     analyze back_t`,
  );
  await mariadb.sql('create database bench');
  await mariadb.sql(
    `create table events (id bigint primary key, kind int, note text, amount decimal(14,4), happened timestamp(6), payload json,
       flag tinyint(1), token char(36), score double, raw varbinary(16));
     insert into events select seq, seq % 100, concat('note ', md5(seq), repeat('ü', seq % 7)), seq * 1.2345,
       timestamp '2024-01-01 00:00:00' + interval seq * 1.000001 second,
       json_object('i', seq, 'tags', json_array('a', 'b"c', seq % 10)), seq % 3 = 0, uuid(), seq / 7.0e0, unhex(md5(seq))
       from seq_1_to_${ROWS};
     analyze table events`,
    'bench',
  );
}

function access({
  host,
  port,
  username,
  password,
}: {
  host: string;
  port: number;
  username: string;
  password: string;
}) {
  return { host, port, username, password, ssl_mode: 'disable' };
}

async function endpoint(connector_type: string, connector_name: string, parameters: object): Promise<string> {
  const name = `${connector_name} ${connector_type}`;
  const body = { name, connector_type, connector_name, parameters };
  const made = await service.call<{ id: string; status: string }>('POST', '/account_connectors', body);
  if (made.status !== 'active') throw new Error(`${name} is ${made.status}`);
  return made.id;
}

interface Choice {
  name?: string;
  destination_table?: string;
  destination_sync_mode?: string;
  fields?: { path: string[]; masking: string }[];
}

async function connect(source_id: string, destination_id: string, stream: Choice): Promise<string> {
  const chosen = { name: 'events', sync_mode: 'full_refresh', destination_sync_mode: 'append' };
  const made = await service.call<{ id: string }>('POST', '/connections', {
    name: `events to ${stream.destination_table ?? 'append_t'}`,
    source_id,
    destination_id,
    streams: [{ ...chosen, destination_table: 'append_t', ...stream }],
  });
  return made.id;
}
