/**
 * `bun tests/bench/append-dedup.ts [rows] [into] [rounds]`: whole incremental runs that merge rows by key into a table
 * ten times as long, half of them updates and half new, against psql that copies the same rows into a temporary table
 * and merges them by INSERT … ON CONFLICT. Needs Debian's postgresql-15.
 */
import { startCluster } from './cluster.ts';
import { quietRounds } from './quiet.ts';
import { median, report, type Times } from './report.ts';
import { runToEnd, startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const INTO = Number(process.argv[3] ?? 10_000_000);
const ROUNDS = Number(process.argv[4] ?? 3);
const COLUMNS = 'id bigint, kind integer, note text, amount numeric(14,4), changed timestamptz';
const PSQL = 'psql: copy, insert on conflict';
const RUN = 'run: append_dedup';

const cluster = await startCluster();
const service = await startService();
try {
  cluster.psql('src', `create table changes (${COLUMNS}, primary key (id))`);
  const rowsFrom = (first: number, count: number) =>
    `select i, i % 100, 'note ' || md5(i::text), i * 1.2345, timestamptz '2024-01-01 00:00+00' + i * interval '1 second'
     from generate_series(${first}, ${first + count - 1}) i`;
  cluster.psql('src', `insert into changes ${rowsFrom(INTO - ROWS / 2 + 1, ROWS)}`);
  cluster.psql('dst', `create table base (${COLUMNS}); insert into base ${rowsFrom(1, INTO)}`);
  // Merged rows differ from the existing ones: an equal row would cost less.
  cluster.psql('src', `update changes set note = note || ' changed'`);
  cluster.psql('src', 'vacuum full analyze changes');
  const times: Times = { [PSQL]: [], [RUN]: [] };
  const work: Record<string, number[]> = {
    'psql: client': [],
    'psql: server': [],
    'run: worker': [],
    'run: server': [],
  };
  for await (const round of quietRounds(ROUNDS)) {
    fresh('merged_by_psql');
    const idle = cluster.seconds();
    const { seconds, processor } = cluster.run(merge('merged_by_psql'));
    times[PSQL]!.push(seconds);
    work['psql: client']!.push(processor);
    work['psql: server']!.push(cluster.seconds() - idle);
    fresh('merged_by_run');
    const connection = await connect(round);
    const before = { server: cluster.seconds(), worker: service.seconds() };
    times[RUN]!.push((await runToEnd(service, connection)).seconds);
    work['run: server']!.push(cluster.seconds() - before.server);
    work['run: worker']!.push(service.seconds() - before.worker);
    compare();
  }
  report(`${INTO.toLocaleString('en')} rows get`, ROWS, times, [[RUN, PSQL, 1]]);
  const spent = Object.entries(work).map(([name, seconds]) => `${name} ${median(seconds).toFixed(2)}`);
  console.log(`  processor seconds: ${spent.join(', ')}`);
  console.log(`  worker's peak memory: ${service.workerPeakMb()} MB`);
} finally {
  await service.stop();
  await cluster.stop();
}

/** Restores the long table with its key and leaves no work for autovacuum or a checkpoint. */
function fresh(table: string): void {
  cluster.psql('dst', `drop table if exists ${table}; create table ${table} as table base`);
  cluster.psql('dst', `alter table ${table} add primary key (id)`);
  cluster.psql('dst', `vacuum analyze ${table}`);
  cluster.psql('dst', 'checkpoint');
}

function merge(table: string): string {
  return (
    `psql -qX $SRC -c "copy changes to stdout (format binary)" | psql -qX $DST -v ON_ERROR_STOP=1 -c "begin" ` +
    `-c "create temp table staged (${COLUMNS}) on commit drop" -c "copy staged from stdin (format binary)" ` +
    `-c "insert into ${table} select * from staged on conflict (id) do update set kind = excluded.kind, ` +
    `note = excluded.note, amount = excluded.amount, changed = excluded.changed" -c "commit"`
  );
}

/** A separate connection for each round: otherwise a round would continue where the last one ended. */
async function connect(round: number): Promise<string> {
  const { host, port, username, password } = cluster;
  const end = async (connector_type: string, database: string) => {
    const parameters = { host, port, database, username, password, ssl_mode: 'disable' };
    const body = { name: `${database} ${round}`, connector_type, connector_name: 'postgres', parameters };
    return (await service.call<{ id: string }>('POST', '/account_connectors', body)).id;
  };
  const stream = {
    name: 'changes',
    sync_mode: 'incremental',
    cursor_field: ['changed'],
    destination_sync_mode: 'append_dedup',
    destination_table: 'merged_by_run',
    shared_destination_table: true,
  };
  const body = {
    name: `round ${round}`,
    source_id: await end('source', 'src'),
    destination_id: await end('destination', 'dst'),
    destination_schema: 'public',
    streams: [stream],
  };
  return (await service.call<{ id: string }>('POST', '/connections', body)).id;
}

/** Both tables must be equal, row by row: a quick merge of wrong rows counts for nothing. */
function compare(): void {
  const digest = (table: string) => `select count(*) || ' ' || sum(hashtext(t::text)) from ${table} t`;
  cluster.psql(
    'dst',
    `do $$ begin if (${digest('merged_by_psql')}) <> (${digest('merged_by_run')}) then raise 'rows differ'; end if; end $$`,
  );
}
