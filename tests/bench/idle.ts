/**
 * `bun tests/bench/idle.ts [connections] [seconds]`: processor time and memory of a service with so many scheduled
 * connections of which none is due, PostgreSQL apart. Needs Debian's postgresql-15.
 */
import { readFileSync } from 'node:fs';
import postgres from 'postgres';
import { startCluster } from './cluster.ts';
import { createMany } from './many-connections.ts';
import { secondsOf } from './processor-seconds.ts';
import { verdict } from './report.ts';
import { startService, workerPid } from './service.ts';

const COUNT = Number(process.argv[2] ?? 1000);
const SECONDS = Number(process.argv[3] ?? 60);
const SETTLE_MS = 20_000;
const GOAL = { core: 0.005, megabytes: 200 };

const cluster = await startCluster();
cluster.psql('postgres', 'create database control');
const service = await startService({ DATABASE_URL: cluster.url('control') });
const control = postgres(cluster.url('control'), { max: 1, onnotice: () => {} });
try {
  await createMany(service, control, COUNT);
  await Bun.sleep(SETTLE_MS);
  const worker = workerPid(service.pid);
  const spent = () => ({ API: secondsOf(service.pid), worker: secondsOf(worker), PostgreSQL: cluster.seconds() });
  const statements = async () => {
    const [row] =
      await control`select sum(xact_commit + xact_rollback)::int as all from pg_stat_database where datname = 'control'`;
    return row?.all as number;
  };
  const [before, transactions] = [spent(), await statements()];
  await Bun.sleep(SECONDS * 1000);
  const after = spent();
  const share = (what: keyof typeof before) => (after[what] - before[what]) / SECONDS;
  const percent = (value: number) => `${(value * 100).toFixed(2)} %`;
  const own = share('API') + share('worker');
  verdict(
    own <= GOAL.core,
    `of a core: API ${percent(share('API'))}, worker ${percent(share('worker'))}, together ${percent(own)}, ` +
      `goal ${percent(GOAL.core)}; PostgreSQL ${percent(share('PostgreSQL'))}`,
  );
  const [api, work] = [memoryOf(service.pid), memoryOf(worker)];
  verdict(
    api.own + work.own <= GOAL.megabytes,
    `memory: API ${api.own} MB, worker ${work.own} MB, together ${api.own + work.own}, goal ${GOAL.megabytes}; ` +
      `resident, with shared pages counted in each: ${api.resident} and ${work.resident} MB`,
  );
  console.log(`${((await statements()) - transactions) / SECONDS} transactions a second`);
} finally {
  await control.end();
  await service.stop();
  await cluster.stop();
}

/** `own`: each page that processes share, such as those of the Bun executable, is divided among them. */
function memoryOf(pid: number): { own: number; resident: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const megabytes = (name: string) =>
    Math.round(Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) / 1024);
  return { own: megabytes('Pss'), resident: megabytes('Rss') };
}
