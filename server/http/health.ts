import { sql } from 'drizzle-orm';
import journal from '../../db/migrations/meta/_journal.json' with { type: 'json' };
import type { Deps } from '../deps.ts';
import type { Handler } from './edge.ts';

const READY_WITHIN_MS = 1000;

/** Always 200: the process is alive. */
export const alive: Handler = () => Response.json({ status: 'ok' });

/** How long a look at the object store is trusted: each one stores an object. */
const STORE_TRUSTED_MS = 10_000;

/**
 * 200 when the database responds within a second and is fully migrated, else 503. Without the object store the service
 * works, but loses logs and exports: then the status is `degraded`.
 */
export function ready(deps: Deps): Handler {
  const storeProblem = remembered(STORE_TRUSTED_MS, () => findStoreProblem(deps));
  return async () => {
    const [database, store] = await Promise.all([
      inTime(databaseProblem(deps), 'the database does not respond'),
      inTime(storeProblem(), 'it does not respond'),
    ]);
    if (database !== null) {
      return Response.json({ detail: `Not ready: ${database}`, code: 'not_ready' }, { status: 503 });
    }
    if (store === null) return Response.json({ status: 'ready' });
    return Response.json({ status: 'degraded', detail: `The object store cannot be written: ${store}` });
  };
}

const inTime = <Result>(work: Promise<Result>, otherwise: Result): Promise<Result> =>
  Promise.race([work, Bun.sleep(READY_WITHIN_MS).then(() => otherwise)]);

function remembered<Result>(ms: number, work: () => Promise<Result>): () => Promise<Result> {
  let last: { result: Promise<Result>; until: number } | null = null;
  return () => {
    const now = performance.now();
    if (last === null || now > last.until) last = { result: work(), until: now + ms };
    return last.result;
  };
}

async function findStoreProblem({ objects, log }: Deps): Promise<string | null> {
  try {
    await objects.put('health/readyz', new Uint8Array([1]));
    return null;
  } catch (error) {
    log.warn({ err: error }, 'degraded');
    return error instanceof Error ? error.message : String(error);
  }
}

async function databaseProblem({ db, log }: Deps): Promise<string | null> {
  try {
    const [row] = await db.execute<{ done: number }>(
      sql`select count(*)::int as done from drizzle.__drizzle_migrations`,
    );
    return (row?.done ?? 0) >= journal.entries.length ? null : 'the database is not migrated';
  } catch (error) {
    log.warn({ err: error }, 'not ready');
    return 'the database does not respond';
  }
}
