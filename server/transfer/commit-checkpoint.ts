import type {
  AnySource,
  ConnectorContext,
  ReadRequest,
  StreamState,
  Writer,
} from '../connectors/contract/connector.ts';
import { type Attempt, ClaimLost } from './attempt.ts';
import { recordCheckpoint } from '../runs/claim-stream.ts';
import { onSide } from '../connector-runtime/side-error.ts';
import type { TransferPlan } from '../pipeline/transfer-plan.ts';

/** A stream on its way. */
export interface Transfer {
  attempt: Attempt;
  plan: TransferPlan;
  source: AnySource;
  sourceContext: ConnectorContext<unknown>;
  writer: Writer;
  request: ReadRequest;
  /** Everything is committed at the end or nothing: there is no checkpoint on the way to note down. */
  at_once: boolean;
  /** Set where the read looks back: no state that is noted down is before it. */
  floor: StreamState | null;
  state_version: number;
}

/** Has the destination commit what it was given, and notes it down. */
export async function commitCheckpoint(input: Transfer, state: StreamState): Promise<void> {
  const { attempt, writer } = input;
  const counts = await onSide('destination', () => writer.checkpoint(state));
  attempt.signal.throwIfAborted();
  input.state_version += 1;
  if (!(await record(input, state, counts))) throw new ClaimLost('Another worker holds this stream');
}

/** After a commit of the destination: the control plane's own note of it. False: the stream is another worker's now. */
export async function record(
  input: Transfer,
  state: StreamState | null,
  counts: Awaited<ReturnType<Writer['finish']>>,
): Promise<boolean> {
  const { attempt, state_version } = input;
  Object.assign(attempt.progress, counts);
  return recordCheckpoint(attempt.deps.db, attempt.claim, { state, state_version, counts });
}
