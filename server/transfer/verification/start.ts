import { and, desc, eq, inArray, isNull, sql } from 'drizzle-orm';
import {
  type ConnectionRow,
  connectionRuns,
  connectionStreams,
  LIVE_VERIFICATION,
  type VerificationRow,
  verifications,
} from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { requireReadyConnectors } from '../../connector-runtime/require-ready.ts';
import type { Deps } from '../../deps.ts';
import { badRequest } from '../../platform/errors.ts';
import { verifyConnection } from '../../queue/jobs.ts';

interface Start {
  /** Locked. */
  connection: ConnectionRow;
  /** Null: all selected streams. */
  stream_names: string[] | null;
  repair: boolean;
  user_id: string | null;
}

/**
 * Queues a verification in the caller's transaction. @returns its id
 * @throws ApiError 400 `verification_already_active`, `unknown_stream`, `account_connector_not_ready`
 */
export async function startVerification(db: Db, { queue }: Pick<Deps, 'queue'>, start: Start): Promise<string> {
  const { connection, stream_names, repair, user_id } = start;
  const [active] = await db.select().from(verifications).where(liveOf(connection.id));
  if (active) {
    throw badRequest('verification_already_active', 'This connection is being verified already', {
      verification_id: active.id,
    });
  }
  await refuseUnknown(db, connection, stream_names);
  await requireReadyConnectors(db, [connection.source_id, connection.destination_id]);
  const [row] = await db
    .insert(verifications)
    .values({
      account_id: connection.account_id,
      connection_id: connection.id,
      connection_run_id: await lastRunId(db, connection),
      stream_names,
      repair,
      triggered_by: user_id,
    })
    .returning({ id: verifications.id });
  if (!row) throw new Error('the insert returned no row');
  await queue.send(db, verifyConnection, { verification_id: row.id }, { account_id: connection.account_id });
  return row.id;
}

const liveOf = (connection_id: string) =>
  and(eq(verifications.connection_id, connection_id), inArray(verifications.status, LIVE_VERIFICATION));

async function refuseUnknown(db: Db, connection: ConnectionRow, names: string[] | null): Promise<void> {
  const streams = await db
    .select({ name: connectionStreams.name })
    .from(connectionStreams)
    .where(and(eq(connectionStreams.connection_id, connection.id), eq(connectionStreams.selected, true)));
  const unknown = (names ?? []).filter((name) => !streams.some((stream) => stream.name === name));
  if (unknown.length === 0) return;
  throw badRequest('unknown_stream', `The connection loads no stream ${unknown.join(', ')}`, {
    field: 'stream_names',
    stream_names: unknown,
  });
}

async function lastRunId(db: Db, { id }: ConnectionRow): Promise<string | null> {
  const [run] = await db
    .select({ id: connectionRuns.id })
    .from(connectionRuns)
    .where(
      and(
        eq(connectionRuns.connection_id, id),
        inArray(connectionRuns.status, ['succeeded', 'partially_succeeded']),
        isNull(connectionRuns.custom_run_plan_id),
      ),
    )
    .orderBy(desc(connectionRuns.number))
    .limit(1);
  return run?.id ?? null;
}

/** Asks a verification to stop. False: it has ended. */
export async function stopVerification(db: Db, { id }: Pick<VerificationRow, 'id'>): Promise<boolean> {
  const waiting = await db
    .update(verifications)
    .set({ status: 'stopped', finished_at: sql`clock_timestamp()` })
    .where(and(eq(verifications.id, id), eq(verifications.status, 'queued')))
    .returning({ id: verifications.id });
  const running = await db
    .update(verifications)
    .set({ status: 'stopping' })
    .where(and(eq(verifications.id, id), inArray(verifications.status, ['running', 'stopping'])))
    .returning({ id: verifications.id });
  return waiting.length + running.length > 0;
}
