import type {
  AnySource,
  ConnectorContext,
  ReadRequest,
  SourceOrigin,
  StreamState,
  WriteCounts,
  Writer,
} from '../connectors/contract/connector.ts';
import { type Attempt, ClaimLost } from './attempt.ts';
import { type Checkpoint, recordCheckpoint } from '../runs/claim-stream.ts';
import { forgetDeliveries } from '../runs/delivery/delivered-batches.ts';
import type { SentBatches } from './delivery-log.ts';
import { onSide } from '../connector-runtime/side-error.ts';
import type { StoredSentRows } from './sent-rows/sent-rows.ts';
import type { TransferPlan } from '../pipeline/transfer-plan.ts';

/** A stream that is being moved. */
export interface Transfer {
  attempt: Attempt;
  plan: TransferPlan;
  source: AnySource;
  sourceContext: ConnectorContext<unknown>;
  writer: Writer;
  request: ReadRequest;
  /** Everything is committed at the end, without checkpoints in between. */
  at_once: boolean;
  /** Set when the read starts in the lookback window: recorded states never move behind it. */
  floor: StreamState | null;
  /** Stored with every state; null: the source has none. */
  origin: SourceOrigin | null;
  state_version: number;
  /** As in `WriteTarget`: the rows become visible with those of other streams. */
  publish_with: string | null;
  /** For a destination that stores no state. */
  deliveries?: SentBatches | undefined;
  /** For a destination that receives only differences. */
  sent?: StoredSentRows | undefined;
}

/** Commits keep the origin of the rows at both sides. */
export const withOrigin = ({ origin }: Pick<Transfer, 'origin'>, state: StreamState): StreamState =>
  origin ? { ...state, origin } : state;

/** Commits the rows written so far at the destination, then records the checkpoint. */
export async function commitCheckpoint(input: Transfer, reached: StreamState): Promise<void> {
  const { attempt, writer } = input;
  const state = withOrigin(input, reached);
  const counts = await onSide('destination', () => writer.checkpoint(state));
  attempt.signal.throwIfAborted();
  input.state_version += 1;
  if (!(await recordCommit(input, state, counts))) throw new ClaimLost('Another worker holds this stream');
}

/** What the control plane records of a commit. */
export function checkpointOf(
  { attempt, state_version }: Transfer,
  state: StreamState | null,
  counts: WriteCounts,
): Checkpoint {
  Object.assign(attempt.progress, counts);
  return { state, state_version, counts };
}

/** Records a commit of the destination in the control plane. False: another worker holds the claim now. */
export async function recordCommit(input: Transfer, state: StreamState | null, counts: WriteCounts): Promise<boolean> {
  const commit = checkpointOf(input, state, counts);
  const { claim, deps } = input.attempt;
  // Without a state the next attempt reads from the start and comes to the batches again.
  if (!input.deliveries || state === null) return recordCheckpoint(deps.db, claim, commit);
  return deps.db.transaction(async (tx) => {
    const recorded = await recordCheckpoint(tx, claim, commit);
    if (recorded) await forgetDeliveries(tx, claim.stream_run.id);
    return recorded;
  });
}
