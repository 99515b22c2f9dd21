import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectorError } from '../../contract/errors.ts';
import type { PgSession } from '../connection/session.ts';
import { literal } from '../connection/sql.ts';

/** Streams open in parallel: one at a time may define tables of a schema. Held until the commit. */
export const definitionsLock = (schema: string): string =>
  `select pg_advisory_xact_lock(hashtextextended(${literal(`data-pipelines:${schema}`)}, 0))`;

/** The longest wait for a lock in a transaction that others wait for, as a value of `lock_timeout`. */
export const LOCK_LIMIT = '30s';

/** Shorter than the server's `deadlock_timeout`: a reader that waits for one of the tables is never the victim. */
export const SHORT_ATTEMPT_MS = 500;
const LONG_ATTEMPT_MS = 5_000;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
const PATIENCE_MS = 5 * 60_000;

/**
 * Locks tables against readers, all of them or none, in the open transaction. Later statements wait for locks without
 * a limit.
 * @throws RetryableError `lock_timeout` when one of them is in use for minutes
 */
export async function lockTables(session: PgSession, relations: readonly string[]): Promise<void> {
  if (relations.length === 0) return;
  const statement = `lock table ${relations.toSorted().join(', ')} in access exclusive mode`;
  // A single table is locked also where statements of several seconds follow each other without a gap.
  const attempt_ms = relations.length > 1 ? SHORT_ATTEMPT_MS : LONG_ATTEMPT_MS;
  await lockInAttempts(session, statement, { attempt_ms, patience_ms: PATIENCE_MS, limit: '0' });
}

interface Attempts {
  attempt_ms: number;
  /** For all attempts together. */
  patience_ms: number;
  /** `lock_timeout` of the statements that follow in the transaction. */
  limit: string;
  /** Before each attempt. */
  prepare?(): Promise<unknown>;
}

/**
 * Runs a statement that locks tables, in the open transaction. Every other session queues up behind a lock that is held
 * or waited for, so an attempt is short and lets go of what it has before the next one.
 * @throws RetryableError `lock_timeout` or `deadlock` of the last attempt
 */
export async function lockInAttempts(
  session: PgSession,
  statement: string,
  { attempt_ms, patience_ms, limit, prepare }: Attempts,
): Promise<void> {
  const since = performance.now();
  const attempt = [
    `savepoint before_lock; set local lock_timeout = '${attempt_ms}ms'`,
    statement,
    `set local lock_timeout = '${limit}'; release savepoint before_lock`,
  ].join('; ');
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    await prepare?.();
    try {
      await session.query(attempt);
      return;
    } catch (error) {
      const busy = error instanceof ConnectorError && BUSY.includes(error.code);
      if (!busy || performance.now() - since > patience_ms) throw error;
      await session.query('rollback to savepoint before_lock; release savepoint before_lock');
      await sleep(pause);
    }
  }
}

const BUSY = ['lock_timeout', 'deadlock'];
