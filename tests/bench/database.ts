/**
 * `bun tests/bench/database.ts [tables=20] [rows=1950000] [rounds=3]`: whole databases of tables with primary keys, of
 * which the first holds a quarter of all rows, by one connection against `pgcopydb clone` with four table jobs, and
 * against `pg_dump | psql`. `50 24000000` is some 5 GB; `5 50000 1` takes less than a minute. Prints processor seconds of
 * both servers and of what moves the rows as well. Needs Debian's postgresql-15 and pgcopydb.
 */
import { existsSync } from 'node:fs';
import { startPair } from './pair.ts';
import { quietRounds } from './quiet.ts';
import { report } from './report.ts';
import { startService } from './service.ts';

const TABLES = Number(process.argv[2] ?? 20);
const ROWS = Number(process.argv[3] ?? 1_950_000);
const ROUNDS = Number(process.argv[4] ?? 3);
const RUN = 'run';
const PGCOPYDB = 'pgcopydb clone --table-jobs 4';
const PG_DUMP = 'pg_dump | psql';

if (!existsSync('/usr/bin/pgcopydb')) throw new Error('this bench needs the Debian package pgcopydb');
for (const peer of ['pgcopydb', 'pg_dump']) {
  console.log(`${peer}: ${Bun.spawnSync([peer, '--version']).stdout.toString().trim().split('\n')[0]}`);
}
const sizes = skewed(TABLES, ROWS);
const service = await startService();
const pair = await startPair(service);
try {
  for (const [at, rows] of sizes.entries()) createTable(`events_${at + 1}`, rows);
  pair.from.psql('src', 'vacuum analyze');
  const id = await connect();
  const contestants: [string, () => Promise<void> | void][] = [
    [RUN, run.bind(null, id)],
    [
      PGCOPYDB,
      () =>
        pair.command(
          PGCOPYDB,
          'pgcopydb clone --source $SRC --target $DST --table-jobs 4 --dir $(mktemp -d) 2> /dev/null',
        ),
    ],
    [PG_DUMP, () => pair.command(PG_DUMP, 'pg_dump $SRC | psql -qX $DST > /dev/null')],
  ];
  for await (const round of quietRounds(ROUNDS)) {
    for (const [, copy] of round % 2 ? contestants.toReversed() : contestants) {
      pair.to.psql('dst', 'set client_min_messages = warning; drop schema public cascade; create schema public');
      await copy();
      compare();
    }
  }
  const title = `A database of ${TABLES} tables with keys`;
  report(title, ROWS, pair.times, [
    [RUN, PGCOPYDB, 1.6],
    [RUN, PG_DUMP, 1.2],
  ]);
  pair.reportWork(title);
  console.log(`  worker's peak memory: ${service.workerPeakMb()} MB`);
} finally {
  await service.stop();
  await pair.stop();
}

/** The second table has half as many rows as the first, the third a third of them, and so on. */
function skewed(tables: number, rows: number): number[] {
  const shares = Array.from({ length: tables }, (_, at) => 1 / (at + 1));
  const all = shares.reduce((sum, share) => sum + share, 0);
  const [, ...others] = shares.map((share) => Math.floor((rows * share) / all));
  return [rows - others.reduce((sum, one) => sum + one, 0), ...others];
}

function createTable(name: string, rows: number): void {
  pair.from.psql(
    'src',
    `create table ${name} (id bigint primary key, kind integer, note text, amount numeric(14,4),
       happened timestamptz, payload jsonb, flag boolean, token uuid, score float8, raw bytea);
     insert into ${name} select i, i % 100, 'note ' || md5(i::text), i * 1.2345,
       timestamptz '2024-01-01 00:00+00' + i * interval '1.000001 seconds', jsonb_build_object('i', i, 'tags', jsonb_build_array('a', i % 10)),
       i % 3 = 0, md5(i::text)::uuid, i / 7.0, decode(md5(i::text), 'hex') from generate_series(1, ${rows}) i`,
  );
}

async function connect(): Promise<string> {
  const made = await service.call<{ id: string }>('POST', '/connections', {
    name: 'database',
    source_id: await pair.endpoint('source', 'database'),
    destination_id: await pair.endpoint('destination', 'database'),
    destination_schema: 'public',
    streams: sizes.map((_, at) => ({
      name: `events_${at + 1}`,
      sync_mode: 'full_refresh',
      destination_sync_mode: 'overwrite',
      primary_key: [['id']],
    })),
  });
  return made.id;
}

async function run(id: string): Promise<void> {
  const rows = await pair.run(RUN, id);
  if (rows !== ROWS) throw new Error(`${rows} rows`);
}

/** Each table has its rows and its key. */
function compare(): void {
  const checks = sizes.map(
    (rows, at) =>
      `if (select count(*) from events_${at + 1}) <> ${rows} then raise 'rows of events_${at + 1}'; end if;`,
  );
  const keys = `if (select count(*) from pg_constraint where contype = 'p' and conrelid::regclass::text like 'events_%') <> ${TABLES} then raise 'keys'; end if;`;
  pair.to.psql('dst', `do $$ begin ${checks.join(' ')} ${keys} end $$`);
}
