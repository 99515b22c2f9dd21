/**
 * `bun tests/bench/pg-to-pg.ts [rows] [rounds]`: whole runs from POST …/run to `succeeded`, against psql pipes and
 * pg_dump in the same run, with the processor seconds of both servers and of what moves the rows. Needs Debian's
 * postgresql-15 (psql, pg_dump).
 */
import { startPair } from './pair.ts';
import { quietRounds } from './quiet.ts';
import { report } from './report.ts';
import { startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const ROUNDS = Number(process.argv[3] ?? 5);
const TABLE = 'events';
const COLUMNS = `id bigint, kind integer, note text, amount numeric(14,4), happened timestamptz, payload jsonb,
  flag boolean, token uuid, score float8, raw bytea`;
const APPEND = 'run: append, no key';
const REFRESH = 'run: full refresh, key, swap';
const MASKED = 'run: masked and renamed';

const service = await startService();
const pair = await startPair(service);
try {
  prepare();
  const ends = [await pair.endpoint('source', 'bench'), await pair.endpoint('destination', 'bench')] as const;
  const ids = {
    [APPEND]: await connect(ends, 'append', 'append_t', {}),
    [REFRESH]: await connect(ends, 'overwrite', 'refresh_t', { primary_key: [['id']] }),
    [MASKED]: await connect(ends, 'append', 'masked_t', {
      fields: [
        { path: ['note'], masking: 'hash_sha256_salted' },
        { path: ['kind'], destination_name: 'category' },
      ],
    }),
  };
  const pipe = (name: string, format: string, key = '') => ({
    table: 'pipe_t',
    key,
    work: () =>
      pair.command(
        name,
        `psql -qX $SRC -c "copy ${TABLE} to stdout (format ${format})" | psql -qX $DST -c "copy pipe_t from stdin (format ${format})"`,
      ),
  });
  const run = (name: keyof typeof ids, table: string | null) => ({
    table,
    key: null,
    work: () => pair.run(name, ids[name]),
  });
  const contestants = [
    pipe('psql | psql binary', 'binary'),
    run(APPEND, 'append_t'),
    pipe('psql | psql binary, keyed', 'binary', ', primary key (id)'),
    run(REFRESH, null),
    pipe('psql | psql text', 'text'),
    run(MASKED, 'masked_t'),
    {
      table: TABLE,
      key: null,
      work: () => pair.command('pg_dump | psql', `pg_dump -t ${TABLE} $SRC | psql -qX $DST > /dev/null`),
    },
  ];
  for await (const round of quietRounds(ROUNDS)) {
    for (const { table, key, work } of round % 2 ? contestants.toReversed() : contestants) {
      if (table !== null) drop(table);
      if (key !== null) pair.to.psql('dst', `create table pipe_t (${COLUMNS}${key})`);
      await work();
    }
  }
  const title = 'PostgreSQL to PostgreSQL';
  report(title, ROWS, pair.times, [
    [APPEND, 'psql | psql binary', 1],
    [REFRESH, 'psql | psql binary, keyed', 1.15],
    [MASKED, 'psql | psql text', 0.95],
    [APPEND, 'pg_dump | psql', 1],
  ]);
  pair.reportWork(title);
  console.log(`  worker's peak memory: ${service.workerPeakMb()} MB`);
} finally {
  await service.stop();
  await pair.stop();
}

function drop(table: string): void {
  pair.to.psql('dst', `set client_min_messages = warning; drop table if exists ${table}`);
}

function prepare(): void {
  const { psql } = pair.from;
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

async function connect(
  [source_id, destination_id]: readonly [string, string],
  mode: string,
  table: string,
  stream: Record<string, unknown>,
): Promise<string> {
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
