import type { Merged } from '../../kits/sql/merge/merge.ts';
import { oneMerge } from '../../kits/sql/merge/one-merge.ts';
import { type Stage, stagedMerge } from '../../kits/sql/stage.ts';
import type { PgSession } from '../connection/session.ts';
import { postgres } from './dialect.ts';
import { runOneMerge } from './one-merge.ts';
import type { PgTarget } from './target.ts';

/** The savepoint to which a merge ahead can be undone. */
const BEFORE_AHEAD = 'before_ahead';

/** Far shorter than the server's `deadlock_timeout`, so that it gives up before the merge that commits first is a victim. */
const LOCK_LIMIT_MS = 200;

/**
 * Merges the stage of an open transaction while the rows before it are merged by another session, which commits first. They
 * may have a key or a unique value in common, or be parents of these, so whatever fails here is undone. So is a merge that
 * leaves a row of the table as it is: it holds no lock on it, so the other one may have changed it, or change it later.
 * @param staged rows of the stage
 * @returns null: nothing of it is left, and it has to wait for that commit
 */
export async function mergeAhead(
  session: PgSession,
  { target, stage, staged }: { target: PgTarget; stage: Stage; staged: number },
): Promise<Merged | null> {
  const one = oneMerge(postgres, target, stagedMerge(postgres, target, stage));
  if (!one) return null;
  try {
    const { rows } = await session.query(
      `savepoint ${BEFORE_AHEAD}; set local lock_timeout = '${LOCK_LIMIT_MS}ms';
       select pg_catalog.current_setting('transaction_isolation') = 'read committed'`,
    );
    // A stricter transaction could make the other one fail.
    const merged = rows[0]?.[0] === 't' ? await runOneMerge(session, target, one) : null;
    if (merged?.effective === staged) {
      await session.query('set local lock_timeout = default');
      return { updated: merged.updated, deleted: merged.deleted };
    }
  } catch {
    // The merge that follows the commit comes to the same error, unless the rows before were its cause.
  }
  await undoAhead(session);
  return null;
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
