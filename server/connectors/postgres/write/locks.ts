import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectorError } from '../../contract/errors.ts';
import type { PgSession } from '../connection/session.ts';
import { literal } from '../connection/sql.ts';

/** Streams open in parallel: one at a time may define tables of a schema. Held until the commit. */
export const definitionsLock = (schema: string): string =>
  `select pg_advisory_xact_lock(hashtextextended(${literal(`data-pipelines:${schema}`)}, 0))`;

/** Shorter than the server's `deadlock_timeout`: a reader that waits for one of the tables is never the victim. */
const ATTEMPT_MS = 500;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
const PATIENCE_MS = 5 * 60_000;

/**
 * Locks tables against readers, all of them or none, in the open transaction. Every other session queues up behind a
 * lock that is held or waited for, so an attempt is short and lets go of what it has before the next one.
 * @throws RetryableError `lock_timeout` when one of them is in use for minutes
 */
export async function lockTogether(session: PgSession, relations: readonly string[]): Promise<void> {
  if (relations.length === 0) return;
  const since = performance.now();
  await session.query(`set local lock_timeout = '${ATTEMPT_MS}ms'`);
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    await session.query('savepoint before_lock');
    try {
      await session.query(`lock table ${relations.toSorted().join(', ')} in access exclusive mode`);
      break;
    } catch (error) {
      const busy = error instanceof ConnectorError && BUSY.includes(error.code);
      if (!busy || performance.now() - since > PATIENCE_MS) throw error;
      await session.query('rollback to savepoint before_lock');
      await sleep(pause);
    }
  }
  await session.query('set local lock_timeout = 0');
}

const BUSY = ['lock_timeout', 'deadlock'];
