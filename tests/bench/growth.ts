/**
 * `bun tests/bench/growth.ts [connections] [minutes]`: so many scheduled connections, a tenth of them due each minute, two
 * workers. First the cost of a tick that finds nothing due, against the same with 100 connections; then the time from due to
 * queued, and how many runs end meanwhile. The runs read ten rows of the demo source into files. Needs Debian's postgresql-15.
 */
import postgres from 'postgres';
import { openDatabase } from '../../db/index.ts';
import type { Deps } from '../../server/deps.ts';
import { fireDue } from '../../server/runs/schedule-tick.ts';
import { startCluster } from './cluster.ts';
import { createMany } from './many-connections.ts';
import { median, verdict } from './report.ts';
import { processorSeconds } from './processor-seconds.ts';
import { startService } from './service.ts';

const COUNT = Number(process.argv[2] ?? 100_000);
const MINUTES = Number(process.argv[3] ?? 2);
const FEW = 100;
const TICKS = 200;
/** Longer than it takes to plan all connections: what is due before that would be late from the start. */
const LEAD_SECONDS = 30;
const GOAL = { tick_ratio: 1.5, late_seconds: 3 };

const cluster = await startCluster(['max_connections=200']);
try {
  const few = await tickOf('few', FEW);
  const many = await tickOf('control', COUNT, firing);
  const ratio = many / few;
  verdict(
    ratio <= GOAL.tick_ratio,
    `a tick with nothing due: ${few.toFixed(2)} ms with ${FEW} connections, ${many.toFixed(2)} ms with ${COUNT}, ` +
      `${ratio.toFixed(2)} of it, goal ${GOAL.tick_ratio}`,
  );
} finally {
  await cluster.stop();
}

/** Median milliseconds of a tick that finds nothing, in an installation with so many connections. */
async function tickOf(
  name: string,
  count: number,
  then?: (installation: Installation) => Promise<void>,
): Promise<number> {
  cluster.psql('postgres', `create database ${name}`);
  const service = await startService({ DATABASE_URL: cluster.url(name) });
  const control = postgres(cluster.url(name), { max: 2, onnotice: () => {} });
  const database = openDatabase(cluster.url(name), { max: 1 });
  try {
    await createMany(service, control, count);
    const times: number[] = [];
    for (let tick = -20; tick < TICKS; tick += 1) {
      const begun = performance.now();
      // A tick that finds nothing needs the database alone.
      await fireDue({ db: database.db } as Deps);
      if (tick >= 0) times.push(performance.now() - begun);
    }
    await then?.({ service, control });
    return median(times);
  } finally {
    await database.close();
    await control.end();
    await service.stop();
  }
}

interface Installation {
  service: Awaited<ReturnType<typeof startService>>;
  control: postgres.Sql;
}

/** A tenth of the connections becomes due in each minute, each once: a second run would be compared with the first time. */
async function firing({ service, control }: Installation): Promise<void> {
  const second = await service.startWorker();
  const start = Date.now() + LEAD_SECONDS * 1000;
  await control`
    create table due as select id, ${new Date(start).toISOString()}::timestamptz + random() * interval '10 minutes' as at
    from connections`;
  await control`create unique index on due (id)`;
  await control`
    update connections set next_run_at = due.at, schedule = schedule || '{"cron_expression": "0 0 1 1 *"}'
    from due where due.id = connections.id`;
  const left = start - Date.now();
  if (left < 0) throw new Error(`connections were planned ${-left} ms after the first was due`);
  await Bun.sleep(left);
  const spent = () => ({
    service: processorSeconds(service.pid),
    second: second.seconds(),
    PostgreSQL: cluster.seconds(),
  });
  const before = spent();
  const begun = performance.now();
  await Bun.sleep(MINUTES * 60_000);
  const seconds = (performance.now() - begun) / 1000;
  const after = spent();
  // One set of connections on both sides of the comparison: what became due in the last seconds may still be fired.
  const [found] = await control<
    { due: number; fired: number; again: number; middle: number; late: number; last: number }[]
  >`
    select count(*)::int as due, count(first)::int as fired, count(*) filter (where runs > 1)::int as again,
      percentile_disc(0.5) within group (order by delay) as middle, percentile_disc(0.95) within group (order by delay) as late,
      max(delay) as last
    from (
      select first, runs, extract(epoch from first - at)::float8 as delay
      from due cross join lateral (
        select min(queued_at) as first, count(*) as runs from connection_runs where connection_id = due.id) ran
      where at < now() - interval '3 seconds') fired`;
  const [runs] = await control<{ ended: number; bad: number }[]>`
    select count(*) filter (where finished_at is not null)::int as ended,
      count(*) filter (where status in ('failed', 'partially_succeeded'))::int as bad
    from connection_runs`;
  await second.stop();
  if (!found || !runs) throw new Error('nothing was found');
  verdict(
    found.late <= GOAL.late_seconds && found.fired === found.due && found.again === 0,
    `${found.fired} of ${found.due} due connections fired ${found.middle.toFixed(2)} s (median), ` +
      `${found.late.toFixed(2)} s (95 %), ${found.last.toFixed(2)} s (last) after they were due, ` +
      `goal ${GOAL.late_seconds} (95 %); ${found.again} fired more than once, goal 0`,
  );
  console.log(`${(runs.ended / seconds).toFixed(1)} runs ended a second; ${runs.bad} failed`);
  const of = (what: keyof typeof before) => `${what} ${((after[what] - before[what]) / seconds).toFixed(2)}`;
  console.log(`cores used: ${of('service')}, ${of('second')}, ${of('PostgreSQL')}`);
}
