import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from 'postgres';

/** Waiting callers hold no connection: they poll. */
const POLL_MS = 100;

/**
 * Runs `work` while holding a lock in this database, so that only one process at a time does. A session holds the lock,
 * not a transaction, so the work can wait for other systems; if the process dies, the lock is released.
 * @throws the reason of the signal if it is aborted while waiting
 */
export async function alone<Result>(
  client: Sql,
  { name, signal }: { name: string; signal: AbortSignal },
  work: () => Promise<Result>,
): Promise<Result> {
  for (;;) {
    signal.throwIfAborted();
    const session = await client.reserve();
    try {
      const [row] = await session`select pg_try_advisory_lock(hashtextextended(${name}, 0)) as mine`;
      if (row?.mine === true) return await locked(session, name, work);
    } finally {
      session.release();
    }
    await sleep(POLL_MS, undefined, { signal }).catch(() => {});
  }
}

async function locked<Result>(session: Sql, name: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } finally {
    // A lost connection has released its locks.
    await session`select pg_advisory_unlock(hashtextextended(${name}, 0))`.catch(() => {});
  }
}
