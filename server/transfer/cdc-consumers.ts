import { and, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import { changeReaders, connectionStreams, type StreamRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type {
  AnyDestination,
  AnySource,
  ConnectorContext,
  LogLag,
  ReadRequest,
  ReplicationRequest,
  StreamSchema,
  StreamState,
} from '../connectors/contract/connector.ts';
import { ConfigurationError } from '../connectors/contract/errors.ts';
import { emitCdcEvent } from '../events/cdc-events.ts';
import type { Attempt } from './attempt.ts';
import type { Claim } from '../runs/claim-stream.ts';
import { givesChanges, takesChanges } from '../pipeline/stream-defaults.ts';

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
  const { stream } = attempt.claim;
  try {
    const lag = await source.acknowledge(sourceContext, request, state);
    attempt.progress.log_lag_bytes = lag.bytes;
    if (lag.is_high) attempt.warn('change_log_lagging', lagText(stream.name, lag.bytes));
    await attempt.deps.db.transaction((tx) => recordLag(tx, stream, lag));
  } catch (error) {
    attempt.signal.throwIfAborted();
    attempt.warn(
      'not_acknowledged',
      `The position in the change log could not be confirmed: ${(error as Error).message}`,
    );
  }
}

/**
 * As `confirmChanges`, for streams that are read from one log: confirms the lowest position of all streams of the
 * connection that will be read on, also of those that this run has not moved.
 */
export async function confirmGroup(
  attempts: readonly Attempt[],
  read: { source: AnySource; sourceContext: ConnectorContext<unknown>; request: ReplicationRequest },
): Promise<void> {
  const { source, sourceContext, request } = read;
  const [{ claim, deps, signal }] = attempts as [Attempt];
  try {
    const states = await deps.db
      .select({ state: connectionStreams.state })
      .from(connectionStreams)
      .innerJoin(changeReaders, eq(changeReaders.stream_id, connectionStreams.id))
      .where(and(eq(connectionStreams.connection_id, claim.connection.id), isNotNull(connectionStreams.state)));
    const held = states.map(({ state }) => state as StreamState);
    const lag = await source.replication!.acknowledge(sourceContext, request, held);
    for (const attempt of attempts) attempt.progress.log_lag_bytes = lag.bytes;
    if (lag.is_high) attempts[0]!.warn('change_log_lagging', lagText(claim.stream.name, lag.bytes));
    await deps.db.transaction((tx) => recordGroupLag(tx, claim.connection.id, lag));
  } catch (error) {
    signal.throwIfAborted();
    const text = `The position in the change log could not be confirmed: ${(error as Error).message}`;
    attempts[0]!.warn('not_acknowledged', text);
  }
}

/** As `recordLag`, for all streams of a connection that are read from one log. Names the one that is the furthest behind. */
export async function recordGroupLag(db: Db, connection_id: string, lag: LogLag): Promise<void> {
  const rows = await db
    .select({ stream: connectionStreams, is_lagging: changeReaders.is_lagging })
    .from(changeReaders)
    .innerJoin(connectionStreams, eq(connectionStreams.id, changeReaders.stream_id))
    .where(eq(connectionStreams.connection_id, connection_id))
    .orderBy(sql`${connectionStreams.state} ->> 'cursor' nulls last`, changeReaders.stream_id)
    .for('no key update', { of: changeReaders });
  const [slowest] = rows;
  if (!slowest) return;
  const next_look_at = sql`now() + make_interval(secs => ${LAG_CHECK_SECONDS})`;
  const ids = rows.map(({ stream }) => stream.id);
  await db
    .update(changeReaders)
    .set({ lag_bytes: lag.bytes, is_lagging: lag.is_high, next_look_at })
    .where(inArray(changeReaders.stream_id, ids));
  if (!lag.is_high || rows.some(({ is_lagging }) => is_lagging)) return;
  const { stream } = slowest;
  const summary = lagText(stream.name, lag.bytes);
  await emitCdcEvent(db, 'change_log_lagging', { stream, summary, lag_bytes: lag.bytes });
}

const lagText = (stream: string, bytes: number) =>
  `The source keeps ${Math.round(bytes / 1_000_000)} MB of log for ${stream}`;

/** Records how far a consumer is behind, and emits an event when the lag becomes high. */
export async function recordLag(
  db: Db,
  stream: Pick<StreamRow, 'id' | 'account_id' | 'connection_id' | 'name' | 'namespace'>,
  lag: LogLag,
) {
  const [before] = await db
    .select()
    .from(changeReaders)
    .where(eq(changeReaders.stream_id, stream.id))
    .for('no key update');
  if (!before) return;
  const next_look_at = sql`now() + make_interval(secs => ${LAG_CHECK_SECONDS})`;
  await db
    .update(changeReaders)
    .set({ lag_bytes: lag.bytes, is_lagging: lag.is_high, next_look_at })
    .where(eq(changeReaders.stream_id, stream.id));
  if (!lag.is_high || before.is_lagging) return;
  await emitCdcEvent(db, 'change_log_lagging', {
    stream,
    summary: lagText(stream.name, lag.bytes),
    lag_bytes: lag.bytes,
  });
}
