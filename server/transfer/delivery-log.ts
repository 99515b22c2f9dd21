import type { AnyDestination, DeliveryLog } from '../connectors/contract/connector.ts';
import { RetryableError } from '../connectors/contract/errors.ts';
import { deliveredBy, recordDelivery } from '../runs/delivered-batches.ts';
import { type Attempt, ClaimLost } from './attempt.ts';

/**
 * For a destination that checks no fence: nothing is sent after the lease, and each batch is recorded before the next one
 * is sent. A worker that cannot reach the control database, or has lost its claim, sends at most one batch.
 */
export async function guardDeliveries(attempt: Attempt, destination: AnyDestination): Promise<DeliveryLog | undefined> {
  if (!destination.capabilities?.at_least_once) return undefined;
  attempt.limitToLease();
  const { deps, claim } = attempt;
  const known = await deliveredBy(deps.db, claim.stream_run.id);
  return {
    rejectedOf: (key) => known.get(key),
    async record(key, rejected) {
      const recorded = await recordDelivery(deps.db, claim, { key, rejected }).catch((cause: unknown) => {
        const text = 'The control database did not record a batch that was sent, so no further one is sent';
        throw new RetryableError('delivery_not_recorded', text, { cause });
      });
      if (!recorded) throw new ClaimLost('Another worker holds this stream');
    },
  };
}
