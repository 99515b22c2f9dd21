import { sql } from 'drizzle-orm';
import journal from '../../db/migrations/meta/_journal.json' with { type: 'json' };
import type { Deps } from '../deps.ts';
import type { Handler } from './edge.ts';

const READY_WITHIN_MS = 1000;

/** Always 200: the process is alive. */
export const alive: Handler = () => Response.json({ status: 'ok' });

/** 200 when the database responds within a second and is fully migrated, else 503. */
export const ready =
  (deps: Deps): Handler =>
  async () => {
    const problem = await Promise.race([
      databaseProblem(deps),
      Bun.sleep(READY_WITHIN_MS).then(() => 'the database does not respond'),
    ]);
    if (problem === null) return Response.json({ status: 'ready' });
    return Response.json({ detail: `Not ready: ${problem}`, code: 'not_ready' }, { status: 503 });
  };

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
