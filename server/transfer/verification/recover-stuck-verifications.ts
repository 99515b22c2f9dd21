import { and, inArray, sql } from 'drizzle-orm';
import { verifications } from '../../../db/schema/index.ts';
import { findsAny, type Question } from '../../../db/ask-together.ts';
import type { Deps } from '../../deps.ts';
import { verifyConnection } from '../../queue/jobs.ts';
import { failVerification, MAX_ATTEMPTS } from './verify-connection.ts';

/** The queue redelivers a dead worker's job after about 10 s. After this time the job is lost and is sent again. */
const LOST_SECONDS = 30;

const isStuck = and(
  inArray(verifications.status, ['running', 'stopping']),
  sql`coalesce(${verifications.heartbeat_at}, ${verifications.updated_at}) < now() - make_interval(secs => ${LOST_SECONDS})`,
);

const ANY_STUCK: Question = {
  name: 'stuck verifications',
  query: (db) => db.select({ id: verifications.id }).from(verifications).where(isStuck).limit(1),
};

/** Recovers verifications whose worker died. Any number of workers may call it at once. */
export async function recoverStuckVerifications(deps: Deps): Promise<void> {
  const { db, queue, log } = deps;
  if (!(await findsAny(db, ANY_STUCK))) return;
  const stuck = await db
    .update(verifications)
    // The heartbeat of this call, so that the job is not sent again before it had time to start.
    .set({ heartbeat_at: sql`clock_timestamp()` })
    .where(isStuck)
    .returning();
  for (const row of stuck) {
    log.warn({ verification_id: row.id, attempts: row.attempts }, 'the worker of a verification died');
    if (row.attempts >= MAX_ATTEMPTS) await failVerification(deps, row);
    else await queue.send(db, verifyConnection, { verification_id: row.id }, { account_id: row.account_id });
  }
}
