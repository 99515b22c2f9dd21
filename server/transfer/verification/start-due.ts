import { and, asc, eq, sql } from 'drizzle-orm';
import { findsAny, type Question } from '../../../db/ask-together.ts';
import { type ConnectionRow, connections, verifications } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import { emitVerificationEvent } from '../../events/verification-events.ts';
import { nextRunAt } from '../../pipeline/schedule.ts';
import { ApiError } from '../../platform/errors.ts';
import { isDueBy, postpone } from '../../runs/schedule-tick.ts';
import { startVerification } from './start.ts';

/** A paused connection is not moved, so it is not verified by itself either. */
const isDue = and(isDueBy('next_verification_at'), eq(connections.status, 'active'));

const ANY_DUE: Question = {
  name: 'due verifications',
  query: (db) => db.select({ id: connections.id }).from(connections).where(isDue).limit(1),
};

/** Starts what is due by the schedules of verifications. Any number of workers may call it at once. */
export async function startDueVerifications(deps: Deps): Promise<void> {
  if (!(await findsAny(deps.db, ANY_DUE))) return;
  while (await startNext(deps));
}

/** One transaction per connection, so that one that fails does not hold up the others. @returns whether one was due */
async function startNext(deps: Deps): Promise<boolean> {
  const taken: ConnectionRow[] = [];
  try {
    await deps.db.transaction((tx) => start(deps, tx, taken));
  } catch (error) {
    const [failed] = taken;
    if (!failed) throw error;
    deps.log.error({ err: error, connection_id: failed.id }, 'a due verification could not be started');
    await postpone(deps.db, failed, 'next_verification_at');
  }
  return taken.length > 0;
}

/** `taken` receives the connection that was due, also if it fails. */
async function start(deps: Deps, db: Db, taken: ConnectionRow[]): Promise<void> {
  const [due] = await db
    .select({ connection: connections, now: sql<string>`now()` })
    .from(connections)
    .where(isDue)
    .orderBy(asc(connections.next_verification_at))
    .limit(1)
    .for('no key update', { skipLocked: true });
  if (!due) return;
  const { connection } = due;
  taken.push(connection);
  const { id, verification_schedule, next_verification_at } = connection;
  // Counted from now: after downtime, one verification catches up.
  const from = { anchor: new Date(next_verification_at!), after: new Date(due.now) };
  const next = verification_schedule && nextRunAt(verification_schedule, from);
  await db.update(connections).set({ next_verification_at: next }).where(eq(connections.id, id));
  try {
    await startVerification(db, deps, { connection, stream_names: null, repair: false, user_id: null });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code !== 'verification_already_active') await recordRefused(db, connection, error);
  }
}

/** Whoever waits for the proof learns why there is none. */
async function recordRefused(db: Db, { id, account_id }: ConnectionRow, { code, message }: ApiError): Promise<void> {
  const [row] = await db
    .insert(verifications)
    .values({
      account_id,
      connection_id: id,
      status: 'failed',
      error: { code, message },
      finished_at: sql`clock_timestamp()`,
    })
    .returning();
  if (row) await emitVerificationEvent(db, row);
}
