import type {
  AnyDestination,
  AnySource,
  Batch,
  ReadRequest,
  StreamState,
  Writer,
  WriteTarget,
} from '../connectors/contract/connector.ts';
import type { Attempt } from './attempt.ts';
import { acknowledgeChanges, noteReader, readerOf, refuseChanges } from './cdc-consumers.ts';
import { CheckpointPace } from './checkpoint.ts';
import { recordCheckpoint } from '../runs/claim-stream.ts';
import { recordColumns, targetColumns, tellOfNewColumns } from './column-history.ts';
import { openConnector } from '../connector-runtime/open-connector.ts';
import { fromSource, onSide } from '../connector-runtime/side-error.ts';
import { loadCurrentStream } from '../catalog/resolve-stream.ts';
import { lookBackOf, notBefore } from './lookback-window.ts';
import { createMapper } from './mapping.ts';
import { hasDateCursor } from '../pipeline/custom-run/streams.ts';
import { byteFormat, pipeBytes } from './byte-lane.ts';
import { windowOf } from '../pipeline/custom-run/windows.ts';
import { prefetch } from './prefetch.ts';
import { commitCheckpoint, record, type Transfer } from './commit-checkpoint.ts';
import { planTransfer, readRequest, tableName, type TransferPlan } from '../pipeline/transfer-plan.ts';
import { replacedWindow } from './replace-window.ts';

/** Moves one stream from where its last checkpoint is to its end. False: the stream is another worker's now. */
export async function moveStream(attempt: Attempt): Promise<boolean> {
  const { claim, deps } = attempt;
  const from = await onSide('source', async () => openConnector(deps, claim.source, attempt.hooks('source')));
  const to = await onSide('destination', async () =>
    openConnector(deps, claim.destination, attempt.hooks('destination')),
  );
  const source = from.connector as AnySource;
  const { schema, stream } = await loadCurrentStream(attempt, source, from.ctx);
  const plan = await onSide('source', async () => planTransfer({ source, schema, stream }));
  tellOfNewColumns(attempt, schema, plan);
  const destination = to.connector as AnyDestination;
  const window = windowFor(attempt, hasDateCursor(schema, stream));
  const about = { claim, schema, stream, destination };
  const look_back = await lookBackOf(deps.db, about, (code, message) => attempt.warn(code, message));
  const replace_window = look_back?.replace_window ?? (await replacedWindow(deps.db, about, window));
  const reader_id = readerOf(claim, schema);
  refuseChanges(reader_id !== undefined, claim, destination);
  const complete = stream.sync_mode === 'full_refresh' && window === null;
  const target = { ...writeTarget(attempt, plan), replace_window, complete };
  const writer = await onSide('destination', () => destination.open(to.ctx, target));
  try {
    if (writer.committed?.finished) return await adopt(attempt, writer);
    const at_once = replace_window != null;
    const resumed = resumeState(attempt, writer);
    const state = look_back ? look_back.from : at_once ? null : resumed;
    const request = { ...readRequest({ plan, schema, stream, state, window }), reader_id };
    if (reader_id !== undefined) await noteReader(deps.db, claim);
    const state_version = Math.max(claim.stream.state_version, writer.committed?.state_version ?? 0);
    const floor = look_back && resumed;
    const sides = { attempt, plan, source, sourceContext: from.ctx, writer };
    return await transfer({ ...sides, request, at_once, floor, state_version });
  } catch (error) {
    await writer.abort().catch((failed) => deps.log.warn({ err: failed }, 'a writer could not be aborted'));
    throw error;
  }
}

async function transfer(input: Transfer): Promise<boolean> {
  const { attempt, source, sourceContext, request, writer } = input;
  const { estimate } = source;
  if (estimate) attempt.progress.estimated_rows ??= await onSide('source', () => estimate(sourceContext, request));
  const format = byteFormat(input);
  const last = format ? await pipeBytes(input, format) : await pumpBatches(input);
  attempt.signal.throwIfAborted();
  const counts = await onSide('destination', () => writer.finish(last));
  input.state_version += 1;
  if (!(await record(input, last, counts))) return false;
  await recordColumns(attempt.deps.db, attempt.claim, input.plan);
  await acknowledgeChanges(attempt, input, last);
  return true;
}

async function pumpBatches(input: Transfer): Promise<StreamState | null> {
  const { attempt, plan, source, sourceContext, writer, request } = input;
  const { deps, claim } = attempt;
  const map = createMapper(
    plan,
    deps.secrets.maskKeys(claim.run.account_id),
    claim.stream.destination_sync_mode === 'append',
  );
  const pace = new CheckpointPace(claim.stream.destination_sync_mode, deps.config.CHECKPOINT_KB * 1024);
  const incremental = claim.stream.sync_mode === 'incremental';
  let state = request.state && notBefore(request.state, input.floor);
  for await (const batch of prefetch(() => fromSource(source.read(sourceContext, request)))) {
    attempt.signal.throwIfAborted();
    attempt.saw(countRows(batch), batch.bytes);
    const mapped: Batch = map(batch);
    if (mapped.rows.length > 0) await onSide('destination', () => writer.write(mapped));
    const due = pace.due(batch.bytes);
    if (!incremental || !batch.state) continue;
    state = notBefore(batch.state, input.floor);
    if (input.at_once || !due) continue;
    await commitCheckpoint(input, state);
    pace.reset();
  }
  return incremental ? state : null;
}

/** That all rows are gone is no row. */
const countRows = ({ rows, changes }: Batch) =>
  changes ? changes.filter(({ operation }) => operation !== 'truncate').length : rows.length;

/** A crash came between the destination's last commit and our note of it: the rows are there, only the note is missing. */
async function adopt(attempt: Attempt, writer: Writer): Promise<boolean> {
  const { committed } = writer;
  await writer.abort();
  if (!committed) return true;
  Object.assign(attempt.progress, committed.counts);
  attempt.progress.rows_read = Math.max(attempt.claim.stream_run.rows_read, committed.counts.rows_loaded);
  return recordCheckpoint(attempt.deps.db, attempt.claim, committed);
}

/** The destination's state wins where it is ahead: it was committed together with the rows. */
function resumeState({ claim }: Attempt, { committed }: Writer): StreamState | null {
  if (claim.stream.sync_mode !== 'incremental') return null;
  const ahead = committed && (committed.same_stream_run || committed.state_version > claim.stream.state_version);
  return ahead ? committed.state : (claim.stream.state ?? null);
}

/** The days of a custom run, or what the connection has from its start date on. */
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
    connection_id: connection.id,
    // A custom run keeps its checkpoints apart from the stream's own.
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
