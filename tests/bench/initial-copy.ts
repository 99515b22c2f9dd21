/**
 * `bun tests/bench/initial-copy.ts [rows=100000] [tables=20] [rounds=3]`: the first run of a connection that follows
 * tables, from POST …/run to `succeeded`, against a native subscription from its creation until it has copied and joined
 * all tables. Source and destination are two servers: on a single one, each slot of the subscription's table copies would
 * wait for the transactions of the others. Processor time is that of both servers and of the worker together: it depends
 * less on what else the machine does. Needs Debian's postgresql-15.
 */
import postgres from 'postgres';
import { type Cluster, startCluster } from './cluster.ts';
import { quietRounds } from './quiet.ts';
import { median, record, report, type Times } from './report.ts';
import { runToEnd, startService } from './service.ts';

const ROWS = Number(process.argv[2] ?? 100_000);
const TABLES = Number(process.argv[3] ?? 20);
const ROUNDS = Number(process.argv[4] ?? 3);
const TITLE = `Initial copy of ${TABLES} tables with change data capture`;
const names = Array.from({ length: TABLES }, (_, at) => `events_${at}`);
const columns = 'kind int, note text, amount numeric(14,4), happened timestamptz, payload jsonb';

const from = await startCluster(['wal_level=logical', 'max_replication_slots=30', 'max_wal_senders=30']);
// Otherwise a table's worker that has to wait begins up to 5 s later.
const to = await startCluster(['wal_retrieve_retry_interval=50ms']);
const service = await startService();
const source = postgres(from.url('src'), { max: 1, onnotice: () => {} });
const destination = postgres(to.url('dst'), { max: 1, onnotice: () => {} });
const subscriber = postgres(to.url('sub'), { max: 1, onnotice: () => {} });
try {
  to.psql('postgres', 'create database sub');
  for (const name of names) {
    await source.unsafe(`create table ${name} (id bigint primary key, ${columns})`);
    await source.unsafe(`insert into ${name}
      select n, n % 100, 'note ' || md5(n::text), n * 1.2345, now(), jsonb_build_object('i', n) from generate_series(1, ${ROWS}) n`);
    await subscriber.unsafe(`create table ${name} (id bigint primary key, ${columns})`);
  }
  await source`vacuum analyze`;
  await source.unsafe(`create publication peer for table ${names.join(', ')}`);
  const ends = [await end('source', from, 'src'), await end('destination', to, 'dst')] as const;
  const times: Times = {};
  const work: Times = {};
  const worked = () => from.seconds() + to.seconds() + service.seconds();
  for await (const round of quietRounds(ROUNDS)) {
    const contestants: [string, () => Promise<number>, () => Promise<void>][] = [
      ['run', () => copied(ends, round), () => compare(destination, schemaOf(round))],
      ['a subscription', subscribed, () => compare(subscriber, 'public')],
    ];
    // Each of them is first in some of the rounds.
    for (const [name, copy, check] of round % 2 ? contestants.toReversed() : contestants) {
      for (const { psql } of [from, to]) psql('postgres', 'checkpoint');
      const before = worked();
      (times[name] ??= []).push(await copy());
      (work[name] ??= []).push(worked() - before);
      await check();
      await clear(round);
    }
  }
  report(TITLE, ROWS * TABLES, times, [['run', 'a subscription', 1]]);
  const figures = Object.fromEntries(Object.entries(work).map(([name, seconds]) => [name, median(seconds)]));
  for (const [name, seconds] of Object.entries(figures))
    console.log(`  processor time of ${name}: ${seconds.toFixed(2)} s`);
  console.log(`  worker's peak memory: ${service.workerPeakMb()} MB`);
  record({ title: `${TITLE}, processor time`, figures: { ...figures, worker_mb: service.workerPeakMb() } });
} finally {
  await subscriber`drop subscription if exists peer`.catch(() => {});
  await Promise.all([source.end(), destination.end(), subscriber.end()]);
  await service.stop();
  await Promise.all([from.stop(), to.stop()]);
}

function schemaOf(round: number): string {
  return `copy_${round}`;
}

/** A new connection each time: a slot and a snapshot of it belong to the copy. */
async function copied([source_id, destination_id]: readonly [string, string], round: number): Promise<number> {
  const { id } = await service.call<{ id: string }>('POST', '/connections', {
    name: schemaOf(round),
    source_id,
    destination_id,
    destination_schema: schemaOf(round),
    streams: names.map((name) => ({ name })),
  });
  const { run, seconds } = await runToEnd(service, id);
  if (run.rows_loaded !== ROWS * TABLES) throw new Error(`${run.rows_loaded} rows`);
  await service.call('DELETE', `/connections/${id}`);
  return seconds;
}

async function subscribed(): Promise<number> {
  const began = performance.now();
  await subscriber.unsafe(`create subscription peer connection '${from.url('src')}' publication peer`);
  while ((await subscriber`select from pg_subscription_rel where srsubstate <> 'r'`).length > 0) await Bun.sleep(20);
  const seconds = (performance.now() - began) / 1000;
  await subscriber`drop subscription peer`;
  return seconds;
}

async function compare(side: postgres.Sql, schema: string): Promise<void> {
  const sums = async (sql: postgres.Sql, place: string) => {
    const of = (name: string) => `select '${name}' as name, count(*) as n,
      sum(hashtextextended(row(id, kind, note, amount, happened, payload)::text, 0)) as sum from ${place}.${name}`;
    return [...(await sql.unsafe(`${names.map(of).join(' union all ')} order by name`))];
  };
  if (!Bun.deepEquals(await sums(source, 'public'), await sums(side, schema)))
    throw new Error(`${schema} differs from the source`);
}

/** Without slots, which would keep the log, and without what was copied. */
async function clear(round: number): Promise<void> {
  await destination.unsafe(`drop schema if exists ${schemaOf(round)} cascade`);
  await subscriber.unsafe(`truncate ${names.join(', ')}`);
  while ((await source`select from pg_replication_slots`).length > 0) await Bun.sleep(50);
}

async function end(connector_type: string, { host, port, username, password }: Cluster, database: string) {
  const replication = connector_type === 'source' ? { replication: 'logical' } : {};
  const { id } = await service.call<{ id: string }>('POST', '/account_connectors', {
    name: connector_type,
    connector_type,
    connector_name: 'postgres',
    parameters: { host, port, database, username, password, ssl_mode: 'disable', ...replication },
  });
  return id;
}
