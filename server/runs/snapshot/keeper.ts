import { and, eq, exists, inArray, isNull, sql } from 'drizzle-orm';
import { connectionRuns, snapshots, type StoredRunError, streamRuns } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { SharedSnapshot } from '../../connectors/contract/connector.ts';
import { isLiveRun } from '../../pipeline/run-states.ts';
import type { Queue } from '../../queue/boss.ts';
import { lockRun, warnOfRun } from '../lock-run.ts';
import type { KeeperClaim } from './claim-keeper.ts';
import { unread } from './members.ts';
import { requestKeeper } from './lost-keepers.ts';

/** From this age on, the run has a warning: the source keeps all row versions since, and its tables grow. */
const OLD_SECONDS = 3600;

const held = ({ run, fence }: KeeperClaim) => and(eq(snapshots.connection_run_id, run.id), eq(snapshots.fence, fence));

/** False: another keeper has the run. */
export async function recordSnapshot(db: Db, claim: KeeperClaim, snapshot: SharedSnapshot): Promise<boolean> {
  const now = sql`clock_timestamp()`;
  const [row] = await db
    .update(snapshots)
    .set({ snapshot, opened_at: now, heartbeat_at: now, is_old: false })
    .where(held(claim))
    .returning({ id: snapshots.connection_run_id });
  return row !== undefined;
}

/** The heartbeat of a keeper that is being opened, which waits for the source. */
export async function recordOpening(db: Db, claim: KeeperClaim): Promise<void> {
  await db
    .update(snapshots)
    .set({ heartbeat_at: sql`clock_timestamp()` })
    .where(and(held(claim), isNull(snapshots.opened_at)));
}

/** The source cannot share a snapshot: its streams are read one by one. */
export async function recordUnavailable(db: Db, claim: KeeperClaim, error: StoredRunError): Promise<void> {
  await db
    .update(snapshots)
    .set({ error, snapshot: null, heartbeat_at: null, settled_at: sql`clock_timestamp()` })
    .where(held(claim));
}

/**
 * The keeper's heartbeat. False: it must let go, because no stream needs the snapshot any more, the run ends, or another
 * keeper has the run.
 */
export async function keepAlive(db: Db, claim: KeeperClaim): Promise<boolean> {
  const [kept] = await db
    .update(snapshots)
    .set({ heartbeat_at: sql`clock_timestamp()` })
    .from(connectionRuns)
    .where(
      and(
        held(claim),
        sql`${snapshots.snapshot} is not null`,
        eq(connectionRuns.id, snapshots.connection_run_id),
        inArray(connectionRuns.status, ['running', 'retrying']),
        exists(db.select({ one: sql`1` }).from(streamRuns).where(unread(claim.run.id))),
      ),
    )
    .returning({
      is_overdue: sql<boolean>`not ${snapshots.is_old} and ${snapshots.opened_at} < clock_timestamp() - make_interval(secs => ${OLD_SECONDS})`,
    });
  if (kept?.is_overdue) await db.transaction((tx) => warnOfAge(tx, claim));
  return kept !== undefined;
}

async function warnOfAge(db: Db, claim: KeeperClaim): Promise<void> {
  const run = await lockRun(db, claim.run.id);
  if (!run || !isLiveRun(run.status)) return;
  await db.update(snapshots).set({ is_old: true }).where(held(claim));
  const message = `The source has kept its snapshot for more than ${OLD_SECONDS / 60} minutes, and cannot remove row versions that are newer. Its tables grow until the run has read them. Set consistency to stream, or split the connection, if that is too much`;
  const warning = { code: 'snapshot_held_long', message, stream_name: null };
  await warnOfRun(db, run, [warning]);
}

/** @param again the snapshot was lost while streams need it, so another keeper opens a new one */
export async function releaseKeeper(db: Db, queue: Queue, claim: KeeperClaim, again: boolean): Promise<void> {
  const [released] = await db
    .update(snapshots)
    .set({ snapshot: null, heartbeat_at: null, ...(again && { requested_at: sql`clock_timestamp()` }) })
    .where(held(claim))
    .returning({ id: snapshots.connection_run_id });
  if (released && again) await requestKeeper(db, queue, claim.run);
}
