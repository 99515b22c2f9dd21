/**
 * `bun tests/bench/idle.ts [connections] [seconds]`: processor time and memory of a service with so many scheduled
 * connections of which none is due, PostgreSQL apart. First, the processes that called connectors end, which takes some
 * five minutes. Needs Debian's postgresql-15.
 */
import { readFileSync } from 'node:fs';
import postgres from 'postgres';
import { startCluster } from './cluster.ts';
import { createMany } from './many-connections.ts';
import { childrenOf, secondsOf } from './processor-seconds.ts';
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
  const worker = workerPid(service.pid);
  while (childrenOf(service.pid).length > 1 || childrenOf(worker).length > 0) await Bun.sleep(1000);
  await Bun.sleep(SETTLE_MS);
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
  const mapped = Math.max(api.mapped, work.mapped);
  const together = api.own + work.own + mapped;
  verdict(
    together <= GOAL.megabytes,
    `memory: API ${api.own} MB, worker ${work.own} MB, pages of files ${mapped} MB, together ${together}, ` +
      `goal ${GOAL.megabytes}`,
  );
  console.log(`${((await statements()) - transactions) / SECONDS} transactions a second`);
} finally {
  await control.end();
  await service.stop();
  await cluster.stop();
}

/**
 * `mapped`: pages of files, nearly all of the Bun executable. The API and the worker share them, but with this bench, too,
 * so that the part that the kernel charges to each process of a page (Pss) would be too small.
 */
function memoryOf(pid: number): { own: number; mapped: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0);
  const own = kilobytes('Anonymous');
  return { own: Math.round(own / 1024), mapped: Math.round((kilobytes('Rss') - own) / 1024) };
}
