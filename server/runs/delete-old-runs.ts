import { sql } from 'drizzle-orm';
import type { Db } from '../../db/types.ts';
import { historyLimit } from '../billing/retention-days.ts';
import type { Deps } from '../deps.ts';

/** Each run has up to some hundred streams, which go with it. */
const BATCH_RUNS = 200;
/** Events compare a run with as many successful ones of its connection. */
const KEPT_RUNS = 30;

/**
 * Deletes a batch of old runs with their streams, and counts them by day in the same transaction. These are kept:
 * - live runs, and those whose network log or shared snapshot has not been removed yet
 * - the last successful runs of each connection, which show what is usual
 * - the last success of each stream, which verification refers to
 * - custom runs: which days were loaded decides what a later one loads
 * - runs that a later rerun or a verification names
 */
export async function deleteOldRuns(deps: Pick<Deps, 'db' | 'now' | 'config'>): Promise<number> {
  const { db, now, config } = deps;
  const limit = historyLimit(now(), config.RUN_RETENTION_DAYS);
  return db.transaction(async (tx) => {
    const old = await tx.execute<{ id: string }>(sql`
      select r.id from connections c join accounts on accounts.id = c.account_id
        cross join lateral (
          select r.id from connection_runs r
          where r.connection_id = c.id and r.created_at < ${limit} and ${isDispensable}
          order by r.created_at limit ${BATCH_RUNS}) old
        join connection_runs r on r.id = old.id
      limit ${BATCH_RUNS} for no key update of r skip locked`);
    if (old.length === 0) return 0;
    const ids = sql`array[${sql.join(
      old.map(({ id }) => sql`${id}::uuid`),
      sql`, `,
    )}]`;
    await count(tx, ids);
    await tx.execute(sql`delete from connection_runs where id = any(${ids})`);
    return old.length;
  });
}

const isDispensable = sql`
  r.finished_at is not null and r.custom_run_plan_id is null
  and r.id not in (
    select last.id from connection_runs last
    where last.connection_id = r.connection_id and last.status = 'succeeded' and last.run_type = 'plain'
    order by last.created_at desc, last.id desc limit ${KEPT_RUNS})
  and not exists (
    select from stream_runs s where s.connection_run_id = r.id and s.status = 'succeeded' and not exists (
      select from stream_runs later
      where later.stream_id = s.stream_id and later.status = 'succeeded' and later.finished_at > s.finished_at))
  and not exists (select from connection_runs again where again.rerun_of_run_id = r.id)
  and not exists (select from verifications v where v.connection_run_id = r.id)
  and not exists (select from network_log_segments n where n.connection_run_id = r.id)
  and not exists (select from snapshots s where s.connection_run_id = r.id and s.settled_at is null)`;

async function count(tx: Db, ids: ReturnType<typeof sql>): Promise<void> {
  await tx.execute(sql`
    insert into run_days as known (account_id, connection_id, day, status, runs)
    select account_id, connection_id, (created_at at time zone 'UTC')::date, status, count(*) from connection_runs
    where id = any(${ids}) group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict (account_id, day, connection_id, status) do update set runs = known.runs + excluded.runs`);
  await tx.execute(sql`
    update installation set attempts_fenced = attempts_fenced + fenced.sum
    from (select coalesce(sum(attempts_fenced), 0) as sum from stream_runs where connection_run_id = any(${ids})) fenced
    where fenced.sum > 0`);
}

/** Deletes certificates that have ended, up to the newest of each connection. Returns their number. */
export async function deleteOldVerifications({
  db,
  now,
  config,
}: Pick<Deps, 'db' | 'now' | 'config'>): Promise<number> {
  const gone = await db.execute(sql`
    delete from verifications where id in (
      select v.id from verifications v join accounts on accounts.id = v.account_id
      where v.finished_at is not null and v.created_at < ${historyLimit(now(), config.RUN_RETENTION_DAYS)}
        and exists (select from verifications later
          where later.connection_id = v.connection_id and later.finished_at is not null and later.created_at > v.created_at)
      order by v.created_at limit ${BATCH_RUNS} for no key update of v skip locked)
    returning id`);
  return gone.length;
}
