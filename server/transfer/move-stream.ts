import type {
  AnyDestination,
  AnySource,
  CommittedState,
  ConnectorContext,
  ReadRequest,
  StreamSchema,
  StreamState,
  WriteCounts,
  Writer,
  WriteTarget,
} from '../connectors/contract/connector.ts';
import type { StreamRow } from '../../db/schema/index.ts';
import type { Attempt } from './attempt.ts';
import {
  confirmChanges,
  consumerOf,
  refuseUnsupportedChanges,
  registerConsumers,
} from './replication/cdc-consumers.ts';
import { recordCheckpoint } from '../runs/claim-stream.ts';
import { reportLost } from '../runs/snapshot/lost-keepers.ts';
import { isSnapshotLost, joinMoment } from './one-moment/join-snapshot.ts';
import { columnsAfter, newlyLoaded, targetColumns, warnAboutColumns } from './column-history.ts';
import { requireDisk } from '../connector-runtime/files-root.ts';
import { openConnector } from '../connector-runtime/open-connector.ts';
import { onSide } from '../connector-runtime/side-error.ts';
import { loadCurrentStream } from '../catalog/resolve-stream.ts';
import { guardDeliveries } from './delivery-log.ts';
import { warnAboutSilentChanges } from './silent-changes.ts';
import { openDifferences } from './sent-rows/open.ts';
import { refuseUnknownCommit, resumeState } from './destination-position.ts';
import { earlierOf, type LookbackWindow, lookbackWindow } from './lookback-window.ts';
import { hasDateCursor } from '../pipeline/custom-run/streams.ts';
import { byteFormat, moveBytes } from './byte-lane.ts';
import { noteCommit, noteRead } from './transfer-notes.ts';
import { inTime } from '../pipeline/log-words.ts';
import { moveRows } from './row-lane.ts';
import { windowOf } from '../pipeline/custom-run/windows.ts';
import { checkpointOf, recordCommit, type Transfer, withOrigin } from './commit-checkpoint.ts';
import { requireSound } from '../pipeline/stream-check/check.ts';
import { planTransfer, readRequest, tableName, type TransferPlan } from '../pipeline/transfer-plan.ts';
import { replacedWindow } from './replace-window.ts';
import { provenOrigin } from './source-position.ts';
import type { Outcome } from '../runs/outcome.ts';

/** How a stream that was moved to its end is recorded. Null: another worker holds the claim now. */
export type Moved = Extract<Outcome, { kind: 'succeeded' | 'ready' }> | null;

const SUCCEEDED: Moved = { kind: 'succeeded' };

/** Moves one stream from its last checkpoint to its end. */
export async function moveStream(attempt: Attempt): Promise<Moved> {
  const { deps } = attempt;
  const began = performance.now();
  const { source, destination } = await openSides(attempt);
  attempt.note('connected', `Source and destination are open after ${inTime(performance.now() - began)}`);
  const prepared = await prepareStream(attempt, source, destination.connector);
  const { plan, lookback } = prepared;
  const deliveries = await guardDeliveries(attempt, destination.connector);
  const moment = await joinMoment(attempt);
  const publish_with = moment?.publish_with ?? null;
  const about = { connector: destination.connector, config: destination.ctx.config };
  const sent = await openDifferences(attempt, about, prepared.target);
  const target = { ...prepared.target, deliveries, publish_with, sent };
  const writer = await onSide('destination', () => destination.connector.open(destination.ctx, target));
  try {
    await refuseUnknownCommit(attempt, writer);
    if (writer.committed?.ready) return await resumeComplete(attempt, writer, plan);
    if (writer.committed?.finished) return (await resumeCommitted(attempt, writer)) ? SUCCEEDED : null;
    // An attempt at a custom run starts again, and would cut the batches elsewhere.
    const starts_again = deliveries !== undefined && attempt.claim.run.custom_run_plan_id !== null;
    const at_once = target.replace_window != null || starts_again;
    const { canResume } = source.connector;
    const serves = async (state: StreamState) =>
      onSide('source', async () => canResume?.(source.ctx, prepared.requestFrom(state)) ?? true);
    const resumed = await resumeState(attempt, writer, serves);
    const from = lookback ? earlierOf(lookback.from, resumed) : target.replace_window != null ? null : resumed;
    const request = { ...prepared.requestFrom(from), snapshot: moment?.snapshot ?? null };
    if (request.reader_id !== undefined) await registerConsumers(deps.db, [attempt.claim]);
    const state_version = stateVersion(attempt, writer);
    const floor = lookback && resumed;
    const known = request.state === null ? null : resumed;
    const origin = await provenOrigin(attempt, { source: source.connector, ctx: source.ctx, request, known });
    const sides = { attempt, plan, source: source.connector, sourceContext: source.ctx, writer };
    return await transfer({ ...sides, request, at_once, floor, origin, state_version, publish_with, deliveries, sent });
  } catch (error) {
    await writer.abort().catch((failed) => deps.log.warn({ err: failed }, 'writer could not be aborted'));
    if (moment && isSnapshotLost(error)) await reportLost(deps.db, deps.queue, { run: attempt.claim.run, ...moment });
    throw error;
  }
}

interface Side<Connector> {
  connector: Connector;
  ctx: ConnectorContext<unknown>;
}

/** Opens both connectors of the attempt's connection. */
export async function openSides(
  attempt: Attempt,
): Promise<{ source: Side<AnySource>; destination: Side<AnyDestination> }> {
  const { claim, deps } = attempt;
  const from = await onSide('source', () => openConnector(deps, claim.source, attempt.hooks('source')));
  const to = await onSide('destination', async () => {
    await requireDisk(deps, claim.destination.account_id);
    return openConnector(deps, claim.destination, attempt.hooks('destination'));
  });
  return {
    source: { connector: from.connector as AnySource, ctx: from.ctx },
    destination: { connector: to.connector as AnyDestination, ctx: to.ctx },
  };
}

/** What is known of a stream before its destination is opened. */
export interface PreparedStream {
  schema: StreamSchema;
  stream: StreamRow;
  plan: TransferPlan;
  target: WriteTarget;
  lookback: LookbackWindow | null;
  requestFrom(state: StreamState | null): ReadRequest;
}

/** Brings the stream up to date with its source, checks its settings and plans the transfer. */
export async function prepareStream(
  attempt: Attempt,
  source: Side<AnySource>,
  destination: AnyDestination,
): Promise<PreparedStream> {
  const { claim, deps } = attempt;
  const { schema, stream } = await loadCurrentStream(attempt, source.connector, source.ctx);
  const plan = await onSide('source', async () => planTransfer({ source: source.connector, schema, stream }));
  warnAboutColumns(attempt, schema, plan);
  warnAboutSilentChanges(attempt, schema, plan);
  requireSound(stream, { schema, destination });
  const window = windowFor(attempt, hasDateCursor(schema, stream));
  const about = { claim, schema, stream, destination };
  const lookback = await lookbackWindow(deps.db, about, (code, message) => attempt.warn(code, message));
  const replace_window = lookback?.replace_window ?? (await replacedWindow(deps.db, about, window));
  const reader_id = consumerOf(claim, schema);
  refuseUnsupportedChanges(reader_id !== undefined, claim, destination);
  const complete = stream.sync_mode === 'full_refresh' && window === null;
  return {
    schema,
    stream,
    plan,
    target: { ...writeTarget(attempt, plan), replace_window, complete },
    lookback,
    requestFrom: (state) => ({
      ...readRequest({ plan, schema, stream, state, window }),
      reader_id,
      inexact_values: claim.connection.inexact_values,
      ...((complete || reader_id !== undefined) && {
        onSnapshot: (snapshot: string) => (attempt.progress.source_snapshot = snapshot),
      }),
    }),
  };
}

/** The version of the state that the writer goes on from. */
export const stateVersion = ({ claim }: Attempt, { committed }: Pick<Writer, 'committed'>): number =>
  Math.max(claim.stream.state_version, committed?.state_version ?? 0);

async function transfer(input: Transfer): Promise<Moved> {
  const { attempt, source, sourceContext, request, writer } = input;
  const { estimate } = source;
  if (estimate) attempt.progress.estimated_rows ??= await onSide('source', () => estimate(sourceContext, request));
  const format = byteFormat(input);
  const noteEndOfRead = noteRead(attempt, request, format);
  const reached = format ? await moveBytes(input, format) : await moveRows(input);
  noteEndOfRead();
  const last = reached && withOrigin(input, reached);
  attempt.signal.throwIfAborted();
  const ended = performance.now();
  const counts = await onSide('destination', () => writer.finish(last));
  noteCommit(attempt, counts, ended);
  input.deliveries?.warnOfOthers();
  await input.sent?.close();
  if (input.publish_with !== null) return readyOf(attempt, input.plan, counts);
  input.state_version += 1;
  const loaded = newlyLoaded(attempt.claim, { schema: input.request.stream, plan: input.plan });
  const succeeded = { kind: 'succeeded' as const, ...(loaded && { loaded }) };
  // If the worker dies before the end of the attempt, the next one finds the commit at the destination. One that holds no
  // state would get the rows again, and a log may forget what was read once its position is confirmed.
  const isFoundAgain = !input.deliveries && !input.sent && request.reader_id === undefined;
  if (isFoundAgain) return { ...succeeded, commit: checkpointOf(input, last, counts) };
  if (!(await recordCommit(input, last, counts))) return null;
  await confirmChanges(attempt, input, last);
  return succeeded;
}

/** The rows count once they are visible. */
const readyOf = ({ claim }: Attempt, plan: TransferPlan, counts: WriteCounts): Moved => ({
  kind: 'ready',
  ready: { counts, loaded_columns: columnsAfter(claim, plan) },
});

/** An earlier attempt crashed after it had completed the new table: only our record is missing. */
async function resumeComplete(attempt: Attempt, writer: Writer, plan: TransferPlan): Promise<Moved> {
  await writer.abort();
  const { counts } = writer.committed!;
  attempt.progress.rows_read = Math.max(attempt.claim.stream_run.rows_read, counts.rows_loaded);
  return readyOf(attempt, plan, counts);
}

/** An earlier attempt crashed between the destination's last commit and ours: only our record is missing. */
async function resumeCommitted(attempt: Attempt, writer: Writer): Promise<boolean> {
  const { committed } = writer;
  await writer.abort();
  return committed ? recordCommitted(attempt, committed) : true;
}

/** @returns false if another worker holds the claim now */
export async function recordCommitted(attempt: Attempt, committed: CommittedState): Promise<boolean> {
  Object.assign(attempt.progress, committed.counts);
  attempt.progress.rows_read = Math.max(attempt.claim.stream_run.rows_read, committed.counts.rows_loaded);
  return recordCheckpoint(attempt.deps.db, attempt.claim, committed);
}

/** The days of a custom run, or everything from the connection's start date on. */
function windowFor({ claim }: Attempt, dates: boolean): ReadRequest['window'] {
  const { run, connection } = claim;
  const days = { start: run.window_start ?? connection.start_date, end: run.window_end };
  return windowOf(days, { timezone: connection.schedule.timezone, dates });
}

function writeTarget({ claim }: Attempt, plan: TransferPlan): WriteTarget {
  const { connection, stream, run, stream_run } = claim;
  return {
    schema: connection.destination_schema,
    table: tableName(connection, stream),
    columns: targetColumns(plan, { stream }),
    primary_key: plan.primary_key,
    cursor_column: plan.cursor_column,
    mode: stream.destination_sync_mode,
    rejects: connection.rejected_rows_policy === 'keep' ? { limit: connection.max_rejected_rows } : null,
    inexact_values: connection.inexact_values,
    connection_id: connection.id,
    // A custom run keeps its checkpoints separate from the stream's own.
    stream_id: run.custom_run_plan_id === null ? stream.id : stream_run.id,
    connection_run_id: run.id,
    stream_run_id: stream_run.id,
    fence: stream_run.fence,
    state_version: stream.state_version,
    ...(stream.sync_mode === 'incremental' && run.custom_run_plan_id === null && { counts: countsOf(stream_run) }),
  };
}

const countsOf = ({
  rows_loaded,
  rows_updated,
  rows_deleted,
  bytes_loaded,
  rows_rejected,
}: Attempt['claim']['stream_run']) => ({
  rows_loaded,
  rows_updated,
  rows_deleted,
  bytes_loaded,
  rows_rejected,
});
