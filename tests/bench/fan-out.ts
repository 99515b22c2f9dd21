/**
 * `bun tests/bench/fan-out.ts [connections]`: as many connections of ten rows, PostgreSQL to PostgreSQL, that become due
 * at the same moment. One service with one worker of four slots; the control database lies on the same server.
 */
import postgres from 'postgres';
import { startCluster } from './cluster.ts';
import { secondsOf } from './processor-seconds.ts';
import { median, verdict } from './report.ts';
import { startService, workerPid } from './service.ts';

const COUNT = Number(process.argv[2] ?? 1000);
const WARM = 8;
const GOAL = { fired_seconds: 3, runs_per_second: 60 };

const cluster = await startCluster(['max_connections=200']);
cluster.psql('postgres', 'create database control');
const service = await startService({ DATABASE_URL: cluster.url('control'), WORKER_CONCURRENCY: '4' });
const control = postgres(cluster.url('control'), { max: 2, onnotice: () => {} });
try {
  const names = Array.from({ length: COUNT }, (_, n) => `ten_${n}`);
  cluster.psql(
    'src',
    names
      .map((name) => `create table ${name} as select i as id, 'x' || i as note from generate_series(1, 10) i`)
      .join(';'),
  );
  await createConnections(names);
  const worker = workerPid(service.pid);
  await fire(WARM);
  await ended(WARM);
  const spent = () => ({ worker: secondsOf(worker), API: secondsOf(service.pid), PostgreSQL: cluster.seconds() });
  const sessions = () => openedSessions(['src', 'dst']);
  const before = { ...spent(), sessions: await sessions() };
  await fire(COUNT);
  await ended(WARM + COUNT);
  const after = { ...spent(), sessions: await sessions() };
  const runs = await control<{ fired: number; done: number; ms: number; status: string }[]>`
    select extract(epoch from queued_at - min(queued_at) over ())::float8 as fired,
      extract(epoch from finished_at - min(queued_at) over ())::float8 as done,
      extract(epoch from finished_at - started_at)::float8 * 1000 as ms, status
    from (select * from connection_runs order by queued_at desc limit ${COUNT}) measured`;
  const failed = runs.filter(({ status }) => status !== 'succeeded').length;
  const fired = Math.max(...runs.map((run) => run.fired));
  const done = Math.max(...runs.map((run) => run.done));
  verdict(fired <= GOAL.fired_seconds, `${COUNT} runs fired in ${fired.toFixed(2)} s, goal ${GOAL.fired_seconds}`);
  verdict(
    COUNT / done >= GOAL.runs_per_second,
    `done in ${done.toFixed(2)} s: ${(COUNT / done).toFixed(1)} runs/s, goal ${GOAL.runs_per_second}; ${failed} failed`,
  );
  console.log(`a run takes ${median(runs.map(({ ms }) => ms)).toFixed(0)} ms at the median`);
  const perRun = (what: 'worker' | 'API' | 'PostgreSQL') =>
    `${what} ${(((after[what] - before[what]) / COUNT) * 1000).toFixed(1)} ms`;
  console.log(`processor time of a run: ${perRun('worker')}, ${perRun('API')}, ${perRun('PostgreSQL')}`);
  console.log(`new sessions at source and destination: ${after.sessions - before.sessions} for ${COUNT} runs`);
} finally {
  await control.end();
  await service.stop();
  await cluster.stop();
}

async function createConnections(tables: readonly string[]): Promise<void> {
  const { host, port, username, password } = cluster;
  const side = async (connector_type: string, database: string) => {
    const parameters = { host, port, database, username, password, ssl_mode: 'disable' };
    const body = { name: connector_type, connector_type, connector_name: 'postgres', parameters };
    return (await service.call<{ id: string }>('POST', '/account_connectors', body)).id;
  };
  const [source_id, destination_id] = [await side('source', 'src'), await side('destination', 'dst')];
  for (const name of tables) {
    await service.call('POST', '/connections', {
      name,
      source_id,
      destination_id,
      schedule: { type: 'cron', cron_expression: '0 0 1 1 *', timezone: 'UTC' },
      streams: [{ name, sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' }],
    });
  }
}

function fire(limit: number) {
  return control`update connections set next_run_at = clock_timestamp() where id in (select id from connections order by id limit ${limit})`;
}

async function ended(count: number): Promise<void> {
  for (;;) {
    const [row] = await control`select count(*)::int as done from connection_runs where finished_at is not null`;
    if (row?.done >= count) return;
    await Bun.sleep(100);
  }
}

/** Since the start of the server. */
async function openedSessions(databases: readonly string[]): Promise<number> {
  const [row] =
    await control`select sum(sessions)::int as opened from pg_stat_database where datname = any(${databases as string[]})`;
  return row?.opened;
}
