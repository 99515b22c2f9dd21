import { and, asc, eq, inArray, isNull, lte, sql } from 'drizzle-orm';
import {
  accountConnectors,
  type ConnectionRow,
  connectionRuns,
  connections,
  connectionStreams,
  type StoredRunError,
} from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import type { Actor } from '../events/emit.ts';
import { type Periodic, periodic } from '../platform/periodic.ts';
import { ApiError } from '../platform/errors.ts';
import { movementRefusal } from '../billing/credits.ts';
import { startRun } from './lifecycle.ts';
import { rediscoverAged } from '../catalog/request-discovery.ts';
import { emitRunEvent } from '../events/run-events.ts';
import { nextRunAt } from '../pipeline/schedule.ts';

const EVERY_MS = 1000;
const AT_ONCE = 20;
const SCHEDULE: Actor = { type: 'schedule', id: null, name: null };

/** Looks every second for connections whose time has come. Any number of processes may do it: a row lock decides. */
export const startScheduler = (deps: Deps): Periodic =>
  periodic(() => fireDue(deps), {
    every_ms: EVERY_MS,
    onError: (error) => deps.log.error({ err: error }, 'scheduler failed'),
  });

/** Fires what is due, each connection in a transaction of its own; for tests as well. */
export async function fireDue(deps: Deps): Promise<void> {
  for (let fired = AT_ONCE; fired === AT_ONCE; ) {
    fired = 0;
    while (fired < AT_ONCE) {
      const connection = await deps.db.transaction((tx) => fireOne(deps, tx));
      if (!connection) break;
      fired += 1;
      // By itself: who stores a catalog locks the source first, and its connections afterwards.
      await deps.db.transaction((tx) => rediscoverAged(tx, deps, connection));
    }
  }
}

async function fireOne(deps: Deps, db: Db): Promise<ConnectionRow | null> {
  const now = deps.now();
  const [connection] = await db
    .select()
    .from(connections)
    .where(and(isNull(connections.deleted_at), lte(connections.next_run_at, now.toISOString())))
    .orderBy(asc(connections.next_run_at))
    .limit(1)
    .for('update', { skipLocked: true });
  if (!connection?.next_run_at) return null;
  // Counted from now, not from the missed tick: after downtime one run catches up, and no more.
  const next = nextRunAt(connection.schedule, { anchor: new Date(connection.next_run_at), after: now });
  const scheduled = connection.status === 'active' || connection.status === 'locked';
  await db
    .update(connections)
    .set({ next_run_at: scheduled ? next : null })
    .where(eq(connections.id, connection.id));
  if (scheduled) await startOrSkip(deps, db, connection);
  return connection;
}

/** A tick that cannot run leaves a skipped run behind, so that nobody wonders where it went. */
async function startOrSkip(deps: Deps, db: Db, connection: ConnectionRow): Promise<void> {
  const reason = await whyNot(deps, db, connection);
  if (reason) return skip(db, connection, reason);
  const streams = await db
    .select()
    .from(connectionStreams)
    .where(and(eq(connectionStreams.connection_id, connection.id), eq(connectionStreams.selected, true)));
  if (streams.length === 0) return skip(db, connection, 'no_streams_selected');
  try {
    await startRun(db, deps.queue, {
      connection,
      streams,
      run_type: 'plain',
      trigger_type: 'schedule',
      actor: SCHEDULE,
    });
  } catch (error) {
    if (error instanceof ApiError && error.code === 'run_already_active') return skip(db, connection, 'overlap');
    throw error;
  }
}

async function whyNot(deps: Deps, db: Db, connection: ConnectionRow): Promise<string | null> {
  if (connection.status === 'locked') return 'plan_limit';
  if (await movementRefusal(db, connection.account_id, deps.now())) return 'plan_limit';
  const both = await db
    .select({ status: accountConnectors.status })
    .from(accountConnectors)
    .where(inArray(accountConnectors.id, [connection.source_id, connection.destination_id]));
  return both.every((row) => row.status === 'active') ? null : 'source_not_ready';
}

async function skip(db: Db, connection: ConnectionRow, skip_reason: string): Promise<void> {
  const [counter] = await db
    .update(connections)
    .set({ run_counter: sql`${connections.run_counter} + 1` })
    .where(eq(connections.id, connection.id))
    .returning({ number: connections.run_counter });
  const [run] = await db
    .insert(connectionRuns)
    .values({
      account_id: connection.account_id,
      connection_id: connection.id,
      number: counter?.number ?? 1,
      status: 'skipped',
      run_type: 'plain',
      trigger_type: 'schedule',
      skip_reason,
      error: skip_reason === 'plan_limit' ? planLimit() : null,
      queued_at: sql`clock_timestamp()`,
      finished_at: sql`clock_timestamp()`,
    })
    .returning();
  if (run) await emitRunEvent(db, { event: 'connection_run_skipped', run, actor: SCHEDULE });
}

const planLimit = (): StoredRunError => ({
  code: 'plan_limit',
  message: 'The plan of the account does not allow the run: its limits or credits are used up, or a payment is missing',
  origin: 'platform',
  type: 'plan_limit',
  retryable: false,
  stream_name: null,
  internal_message: null,
  occurred_at: new Date().toISOString(),
});
