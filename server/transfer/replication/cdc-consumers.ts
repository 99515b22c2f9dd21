import { and, eq, inArray, notInArray, sql } from 'drizzle-orm';
import { changeReaders, connectionStreams } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type {
  AnyDestination,
  AnySource,
  ConnectorContext,
  LogLag,
  ReadRequest,
  ReplicationRequest,
  StreamSchema,
  StreamState,
} from '../../connectors/contract/connector.ts';
import { ConfigurationError } from '../../connectors/contract/errors.ts';
import { pauseConnection } from '../../catalog/disable-connection.ts';
import { emitCdcEvent } from '../../events/stream-events.ts';
import type { Attempt } from '../attempt.ts';
import type { Claim } from '../../runs/claim-stream.ts';
import { isNotParked } from '../../runs/park-stream.ts';
import { givesChanges, takesChanges } from '../../pipeline/stream-defaults.ts';

/** How often the lag of an idle consumer is measured. */
export const LAG_CHECK_SECONDS = 300;

/** Id of the stream's CDC consumer. Undefined: the stream is read without the log, as in custom runs. */
export function consumerOf({ run, stream }: Claim, schema: StreamSchema): string | undefined {
  return givesChanges(schema, stream) && run.custom_run_plan_id === null ? stream.id : undefined;
}

/** @throws ConfigurationError when the destination cannot apply deletes, and would keep deleted rows */
export function refuseUnsupportedChanges(follows: boolean, { stream }: Claim, destination: AnyDestination): void {
  if (!follows || takesChanges(destination, stream.destination_sync_mode)) return;
  throw new ConfigurationError(
    'changes_unsupported',
    `${destination.display_name} cannot apply deletes. Write ${stream.name} with append, which keeps each change as a row`,
  );
}

/** Called before the first read, so that whatever it leaves at the source is known. */
export async function registerConsumers(db: Db, claims: readonly Claim[]): Promise<void> {
  const next_look_at = sql`now() + make_interval(secs => ${LAG_CHECK_SECONDS})`;
  await db
    .insert(changeReaders)
    .values(claims.map(({ stream, source }) => ({ stream_id: stream.id, source_id: source.id, next_look_at })))
    .onConflictDoNothing();
}

/** Confirms the committed position, so that the source can discard its log. On failure, the next read confirms it. */
export async function confirmChanges(
  attempt: Attempt,
  read: { source: AnySource; sourceContext: ConnectorContext<unknown>; request: ReadRequest },
  state: StreamState | null,
): Promise<void> {
  const { source, sourceContext, request } = read;
  if (request.reader_id === undefined || !source.acknowledge || !state) return;
  await confirm([attempt], async () => {
    const lag = await source.acknowledge!(sourceContext, request, state);
    noteOf([attempt], lag);
    await attempt.deps.db.transaction((tx) => recordLag(tx, { stream_id: attempt.claim.stream.id }, lag));
  });
}

/**
 * As `confirmChanges`, for streams that are read from one log: confirms the lowest position of all streams of the
 * connection that will be read on, also of those that this run has not moved.
 */
export async function confirmLog(
  attempts: readonly Attempt[],
  read: { source: AnySource; sourceContext: ConnectorContext<unknown>; request: ReplicationRequest },
): Promise<void> {
  const { source, sourceContext, request } = read;
  const [{ claim, deps }] = attempts as [Attempt];
  await confirm(attempts, async () => {
    const held = await statesOfOthers(deps.db, claim.connection.id, []);
    await noteLag(attempts, await source.replication!.acknowledge(sourceContext, request, held));
  });
}

async function confirm(attempts: readonly Attempt[], work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const [first] = attempts as [Attempt];
    first.signal.throwIfAborted();
    const text = `The position in the change log could not be confirmed: ${(error as Error).message}`;
    first.warn('not_acknowledged', text);
  }
}

/** The states of all streams of a connection that will be read on, but for `ids`. */
export async function statesOfOthers(db: Db, connection_id: string, ids: readonly string[]): Promise<StreamState[]> {
  const rows = await db
    .select({ state: connectionStreams.state })
    .from(connectionStreams)
    .innerJoin(changeReaders, eq(changeReaders.stream_id, connectionStreams.id))
    .where(
      and(
        eq(connectionStreams.connection_id, connection_id),
        eq(connectionStreams.selected, true),
        isNotParked,
        ids.length > 0 ? notInArray(connectionStreams.id, [...ids]) : undefined,
      ),
    );
  return rows.map(({ state }) => state as StreamState);
}

/** Records how far streams that share a log are behind. */
export async function noteLag(attempts: readonly Attempt[], lag: LogLag): Promise<void> {
  noteOf(attempts, lag);
  const [{ claim, deps }] = attempts as [Attempt];
  await deps.db.transaction((tx) => recordLag(tx, { connection_id: claim.connection.id }, lag));
  if (lag.is_over) await pauseForLog(deps.db, claim.connection.id, lag);
}

/** The slot is dropped once no run reads it. */
export async function pauseForLog(db: Db, connection_id: string, { bytes }: LogLag): Promise<void> {
  const because = `its source keeps ${megabytes(bytes)} MB of log for it, which is above the limit. Its slot is dropped: reset the cursors of its streams before you resume it`;
  await db.transaction(async (tx) => {
    await pauseConnection(tx, connection_id, { status_reason: 'change_log_limit', because });
    const ids = tx
      .select({ id: connectionStreams.id })
      .from(connectionStreams)
      .where(eq(connectionStreams.connection_id, connection_id));
    await tx.update(changeReaders).set({ next_look_at: sql`now()` }).where(inArray(changeReaders.stream_id, ids));
  });
}

const megabytes = (bytes: number) => Math.round(bytes / 1_000_000);

function noteOf(attempts: readonly Attempt[], { bytes, is_high }: LogLag): void {
  for (const { progress } of attempts) progress.log_lag_bytes = bytes;
  const [first] = attempts as [Attempt];
  const known = first.warnings.some(({ code }) => code === 'change_log_lagging');
  if (is_high && !known) first.warn('change_log_lagging', lagText(first.claim.stream.name, bytes));
}

const lagText = (stream: string, bytes: number) => `The source keeps ${megabytes(bytes)} MB of log for ${stream}`;

/**
 * Records how far a consumer is behind, one stream or all of a connection that share a log, and emits an event when the
 * lag becomes high. It names the stream that is the furthest behind.
 */
export async function recordLag(
  db: Db,
  of: { stream_id: string } | { connection_id: string },
  { bytes, seconds, is_high, shrinks }: LogLag,
): Promise<void> {
  const rows = await db
    .select({ stream: connectionStreams, is_lagging: changeReaders.is_lagging })
    .from(changeReaders)
    .innerJoin(connectionStreams, eq(connectionStreams.id, changeReaders.stream_id))
    .where(
      'stream_id' in of
        ? eq(connectionStreams.id, of.stream_id)
        : eq(connectionStreams.connection_id, of.connection_id),
    )
    .orderBy(sql`not ${isNotParked}, ${connectionStreams.state} ->> 'cursor' nulls last`, changeReaders.stream_id)
    .for('no key update', { of: changeReaders });
  const [slowest] = rows;
  if (!slowest) return;
  // A source that can release more does so at the next look.
  const next_look_at = shrinks ? sql`now()` : sql`now() + make_interval(secs => ${LAG_CHECK_SECONDS})`;
  const ids = rows.map(({ stream }) => stream.id);
  await db
    .update(changeReaders)
    .set({
      lag_bytes: bytes,
      lag_seconds: seconds ?? null,
      lag_measured_at: sql`now()`,
      is_lagging: is_high,
      next_look_at,
    })
    .where(inArray(changeReaders.stream_id, ids));
  if (!is_high || rows.some(({ is_lagging }) => is_lagging)) return;
  const { stream } = slowest;
  await emitCdcEvent(db, 'change_log_lagging', { stream, summary: lagText(stream.name, bytes), lag_bytes: bytes });
}
