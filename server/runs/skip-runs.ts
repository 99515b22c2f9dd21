import { inArray, sql } from 'drizzle-orm';
import { type ConnectionRow, connectionRuns, connections, type StoredRunError } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Actor } from '../events/emit.ts';
import { emitRunEvents } from '../events/run-events.ts';
import { isContinuous } from '../pipeline/schedule.ts';
import { insertRuns, type StartRefused } from './start.ts';

export const SCHEDULE: Actor = { type: 'schedule', id: null, name: null };

const REASONS: Record<string, string> = {
  connection_locked: 'plan_limit',
  payment_required: 'plan_limit',
  credits_exhausted: 'plan_limit',
  account_limit_reached: 'plan_limit',
  account_connector_not_ready: 'source_not_ready',
  run_already_active: 'overlap',
};

/** A tick that may not start a run. */
interface Skipped {
  connection: ConnectionRow;
  refused: StartRefused;
}

/**
 * Leaves a skipped run with the reason for each. A continuous connection has no ticks that could be missed: it waits, looks
 * again soon, and leaves one for each reason.
 */
export async function skipRuns(db: Db, skipped: readonly Skipped[]): Promise<void> {
  const waiting = skipped.map(({ connection }) => connection).filter(({ schedule }) => isContinuous(schedule));
  const known = await lastReasons(db, waiting);
  const isKnown = ({ connection, refused }: Skipped) => known.get(connection.id) === reasonOf(refused);
  const runs = await insertRuns(
    db,
    skipped
      .filter((one) => !isKnown(one))
      .map(({ connection, refused }) => ({
        connection,
        status: 'skipped',
        run_type: 'plain',
        trigger_type: 'schedule',
        skip_reason: reasonOf(refused),
        error: errorOf(connection, refused),
        queued_at: sql`clock_timestamp()`,
        finished_at: sql`clock_timestamp()`,
      })),
  );
  await emitRunEvents(db, { event: 'connection_run_skipped', runs, actor: SCHEDULE });
  await lookSoon(db, waiting);
}

const reasonOf = ({ code }: StartRefused): string => REASONS[code] ?? code;

/** Why the last plain runs of these connections were skipped. */
async function lastReasons(db: Db, waiting: readonly ConnectionRow[]): Promise<Map<string, string | null>> {
  if (waiting.length === 0) return new Map();
  const reason = sql<string | null>`(
    select r.skip_reason from ${connectionRuns} r where r.connection_id = connections.id and r.custom_run_plan_id is null
    order by r.number desc limit 1)`;
  const rows = await db
    .select({ id: connections.id, reason })
    .from(connections)
    .where(inArray(connections.id, ids(waiting)));
  return new Map(rows.map((row) => [row.id, row.reason]));
}

const WAITING_SECONDS = 10;

async function lookSoon(db: Db, waiting: readonly ConnectionRow[]): Promise<void> {
  if (waiting.length === 0) return;
  await db
    .update(connections)
    .set({ next_run_at: sql`now() + make_interval(secs => ${WAITING_SECONDS})` })
    .where(inArray(connections.id, ids(waiting)));
}

const ids = (waiting: readonly ConnectionRow[]) => waiting.map(({ id }) => id);

/** Null: another run does the work. */
function errorOf({ source_id }: ConnectionRow, refused: StartRefused): StoredRunError | null {
  const code = reasonOf(refused);
  if (code === 'overlap') return null;
  const { account_connector_id: unready } = refused.context;
  const origin = unready === undefined ? 'platform' : unready === source_id ? 'source' : 'destination';
  return {
    code,
    message: refused.message,
    origin,
    type: code === 'plan_limit' ? code : 'config_error',
    retryable: false,
    stream_name: null,
    internal_message: null,
    occurred_at: new Date().toISOString(),
  };
}
