import type { AnyDestination, DeliveredBatch, DeliveryLog } from '../connectors/contract/connector.ts';
import { RetryableError } from '../connectors/contract/errors.ts';
import { deliveredBy, recordDelivery } from '../runs/delivery/delivered-batches.ts';
import { type Attempt, ClaimLost } from './attempt.ts';

/**
 * For a destination that checks no fence: nothing is sent after the lease, and each batch is recorded before the next one
 * is sent. A worker that cannot reach the control database, or has lost its claim, sends at most one batch.
 */
export async function guardDeliveries(attempt: Attempt, destination: AnyDestination): Promise<SentBatches | undefined> {
  if (!destination.capabilities?.at_least_once) return undefined;
  attempt.limitToLease();
  return new SentBatches(attempt, await deliveredBy(attempt.deps.db, attempt.claim.stream_run.id));
}

/** The batches of earlier attempts since the last checkpoint, and which of them this attempt has come to again. */
export class SentBatches implements DeliveryLog {
  readonly #open: Map<string, DeliveredBatch>;

  constructor(
    private readonly attempt: Attempt,
    private readonly known: ReadonlyMap<string, DeliveredBatch>,
  ) {
    this.#open = new Map(known);
  }

  /** A checkpoint before the end of what was sent would cut the batches elsewhere, so that rows were sent twice. */
  get mayCheckpoint(): boolean {
    return this.#open.size === 0;
  }

  rejectedOf(key: string): number | undefined {
    this.#open.delete(key);
    return this.known.get(key)?.rejected;
  }

  async record(key: string, batch: DeliveredBatch): Promise<void> {
    const { deps, claim } = this.attempt;
    const recorded = await recordDelivery(deps.db, claim, { key, ...batch }).catch((cause: unknown) => {
      const text = 'The control database did not record a batch that was sent, so no further one is sent';
      throw new RetryableError('delivery_not_recorded', text, { cause });
    });
    if (!recorded) throw new ClaimLost('Another worker holds this stream');
  }

  /** Call it at the end of the read: the rows of the batches that are left were sent and are not part of it. */
  warnOfOthers(): void {
    const { size } = this.#open;
    if (size === 0) return;
    const rows = this.#open.values().reduce((sum, batch) => sum + batch.rows, 0);
    this.attempt.warn(
      'rows_sent_again',
      `${rows} rows in ${size} ${size === 1 ? 'batch' : 'batches'}, and at most one batch more, were sent by an earlier attempt before the source returned other rows. ` +
        'The receiver may hold them twice, or hold rows that the source no longer has. Compare both, or remove the rows and run the stream again',
    );
  }
}
