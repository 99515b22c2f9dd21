import { oneMerge } from '../../../kits/sql/merge/one-merge.ts';
import { type Stage, stagedMerge } from '../../../kits/sql/stage.ts';
import type { PgSession } from '../../connection/session.ts';
import { postgres } from '../dialect.ts';
import { type OneMerged, runOneMerge } from './one-merge.ts';
import type { PgTarget } from '../target.ts';

/** The savepoint to which a merge ahead can be undone. */
const BEFORE_AHEAD = 'before_ahead';

/** Far shorter than the server's `deadlock_timeout`, so that it gives up before the merge that commits first is a victim. */
const LOCK_LIMIT_MS = 200;

/**
 * Lets an open transaction merge while the rows before it are merged by another session, which commits first. They may have
 * a unique value in common, or be parents of these, so whatever fails here is undone.
 * @param merge gives null where it cannot be done so
 * @returns null: nothing of it is left, and it has to wait for that commit
 */
export async function ahead<Result>(session: PgSession, merge: () => Promise<Result | null>): Promise<Result | null> {
  try {
    const { rows } = await session.query(
      `savepoint ${BEFORE_AHEAD}; set local lock_timeout = '${LOCK_LIMIT_MS}ms';
       select pg_catalog.current_setting('transaction_isolation') = 'read committed'`,
    );
    // A stricter transaction could make the other one fail.
    const merged = rows[0]?.[0] === 't' ? await merge() : null;
    if (merged !== null) {
      await session.query('set local lock_timeout = default');
      return merged;
    }
  } catch {
    // The merge that follows the commit comes to the same error, unless the rows before were its cause.
  }
  await undoAhead(session);
  return null;
}

/** Merges a stage within `ahead`. */
export async function mergeAhead(
  session: PgSession,
  { target, stage }: { target: PgTarget; stage: Stage },
): Promise<OneMerged | null> {
  const one = oneMerge(postgres, target, stagedMerge(postgres, target, stage));
  return one && runOneMerge(session, target, one);
}

/** The locks of the merge end with it. */
export async function undoAhead(session: PgSession): Promise<void> {
  await session.query(`rollback to savepoint ${BEFORE_AHEAD}; release savepoint ${BEFORE_AHEAD}`);
}

/** Whether another session waits for a row that this one has changed. */
export async function isWaitedFor(session: PgSession): Promise<boolean> {
  const { rows } = await session.query(
    `select exists (select from pg_catalog.pg_locks l where not l.granted and l.locktype = 'transactionid'
       and pg_catalog.pg_backend_pid() = any(pg_catalog.pg_blocking_pids(l.pid)))`,
  );
  return rows[0]?.[0] === 't';
}
