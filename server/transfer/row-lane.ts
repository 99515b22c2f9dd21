import { fromSource, onSide } from '../connector-runtime/side-error.ts';
import type { Batch, StreamState } from '../connectors/contract/connector.ts';
import { CheckpointPace } from './pace/checkpoint-pace.ts';
import { commitCheckpoint, type Transfer } from './commit-checkpoint.ts';
import { notBefore } from './lookback-window.ts';
import { createMapper } from './mapping.ts';
import { prefetch } from './pace/prefetch.ts';

/** Moves the stream as batches of rows, which the mapping can change. Resolves to the state at the end. */
export async function moveRows(input: Transfer): Promise<StreamState | null> {
  const { attempt, plan, source, sourceContext, writer, request } = input;
  const { deps, claim } = attempt;
  const keepsHistory = claim.stream.destination_sync_mode === 'append';
  const map = createMapper(plan, deps.secrets.maskKeys(claim.run.account_id), keepsHistory);
  const pace = new CheckpointPace(claim.stream.destination_sync_mode, deps.config.CHECKPOINT_KB * 1024);
  const incremental = claim.stream.sync_mode === 'incremental';
  let state = request.state && notBefore(request.state, input.floor);
  for await (const batch of prefetch(() => fromSource(source.read(sourceContext, request)))) {
    attempt.signal.throwIfAborted();
    attempt.recordRead(countRows(batch), batch.bytes);
    const mapped: Batch = map(batch);
    if (mapped.rows.length > 0) await onSide('destination', () => writer.write(mapped));
    const due = pace.due(batch.bytes);
    if (!incremental || !batch.state) continue;
    state = notBefore(batch.state, input.floor);
    if (input.at_once || !due || input.deliveries?.mayCheckpoint === false) continue;
    await commitCheckpoint(input, state);
    pace.reset();
  }
  return incremental ? state : null;
}

/** A truncate is a change without a row. */
const countRows = ({ rows, changes }: Batch) =>
  changes ? changes.filter(({ operation }) => operation !== 'truncate').length : rows.length;
