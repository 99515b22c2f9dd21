import { and, eq, inArray, isNotNull, isNull, type SQL, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import { connectionRuns, type RunRow, snapshots } from '../../../db/schema/index.ts';
import { findsAny, type Question } from '../../../db/ask-together.ts';
import type { Db } from '../../../db/types.ts';
import type { Queue } from '../../queue/boss.ts';
import { keepSnapshot, publishTables } from '../../queue/jobs.ts';
import { LOST_SECONDS } from './members.ts';

/** The queue hands the job of a dead worker to another one after about 10 s. */
const LOST_PUBLISHING_SECONDS = 60;

/** Sends the job that opens the snapshot, or has the streams claimed again that share one in a process. */
export async function requestKeeper(db: Db, queue: Queue, run: Pick<RunRow, 'id' | 'account_id'>): Promise<void> {
  await queue.send(db, keepSnapshot, { connection_run_id: run.id }, { account_id: run.account_id });
}

/** A reader could not join: the snapshot is replaced, unless that has happened already. */
export async function reportLost(
  db: Db,
  queue: Queue,
  { run, generation }: { run: Pick<RunRow, 'id' | 'account_id'>; generation: number },
): Promise<void> {
  const [lost] = await db
    .update(snapshots)
    .set({ snapshot: null, heartbeat_at: null, requested_at: sql`clock_timestamp()` })
    .where(and(eq(snapshots.connection_run_id, run.id), eq(snapshots.generation, generation)))
    .returning({ id: snapshots.connection_run_id });
  if (lost) await requestKeeper(db, queue, run);
}

/** The snapshots of workers that have died. Others are requested by `recoverSnapshots`. */
export async function forgetKeepers(db: Db, worker_ids: string[]): Promise<void> {
  await db
    .update(snapshots)
    .set({ snapshot: null, heartbeat_at: null })
    .where(and(inArray(snapshots.worker_id, worker_ids), isNull(snapshots.settled_at)));
}

const ANY_SHARED: Question = {
  name: 'shared snapshots',
  query: (db) =>
    db.select({ id: snapshots.connection_run_id }).from(snapshots).where(isNull(snapshots.settled_at)).limit(1),
};

/** Requests a keeper where none has answered, and sends jobs again that were lost with their worker. */
export async function recoverSnapshots(db: Db, queue: Queue): Promise<void> {
  if (!(await findsAny(db, ANY_SHARED))) return;
  const before = (column: AnyPgColumn, seconds: number) =>
    sql`coalesce(${column} < clock_timestamp() - make_interval(secs => ${seconds}), true)`;
  const lacksKeeper = and(
    isNull(snapshots.settled_at),
    isNull(snapshots.publish_requested_at),
    before(snapshots.heartbeat_at, LOST_SECONDS),
    before(snapshots.requested_at, LOST_SECONDS),
  );
  const unpublished = and(
    isNull(snapshots.settled_at),
    isNotNull(snapshots.publish_requested_at),
    before(snapshots.publishing_at, LOST_PUBLISHING_SECONDS),
    before(snapshots.publish_requested_at, LOST_PUBLISHING_SECONDS),
  );
  await requestAgain(db, queue, { job: keepSnapshot, requested: 'requested_at', where: lacksKeeper });
  await requestAgain(db, queue, { job: publishTables, requested: 'publish_requested_at', where: unpublished });
}

/** Sends the job again for each run whose snapshot matches, and records when. */
async function requestAgain(
  db: Db,
  queue: Queue,
  {
    job,
    requested,
    where,
  }: {
    job: typeof keepSnapshot | typeof publishTables;
    requested: 'requested_at' | 'publish_requested_at';
    where: SQL | undefined;
  },
): Promise<void> {
  await db.transaction(async (tx) => {
    const lost = await tx
      .update(snapshots)
      .set({ [requested]: sql`clock_timestamp()` })
      .from(connectionRuns)
      .where(and(where, eq(connectionRuns.id, snapshots.connection_run_id)))
      .returning({ id: connectionRuns.id, account_id: connectionRuns.account_id });
    for (const { id, account_id } of lost) await queue.send(tx, job, { connection_run_id: id }, { account_id });
  });
}
