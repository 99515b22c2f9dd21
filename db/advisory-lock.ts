import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from 'postgres';

/** Those who wait hold no connection meanwhile: they look again so often. */
const LOOK_MS = 100;

/**
 * Does work alone among all processes that name the same lock in this database. A connection holds it, not a
 * transaction, so the work may talk to others; a process that dies lets go of it.
 * @throws the signal's reason when it is aborted while somebody else works
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
    await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
  }
}

async function locked<Result>(session: Sql, name: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } finally {
    // A connection that is gone has let go of its locks.
    await session`select pg_advisory_unlock(hashtextextended(${name}, 0))`.catch(() => {});
  }
}
