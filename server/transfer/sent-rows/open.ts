import type { AnyDestination, WriteCounts, WriteTarget } from '../../connectors/contract/connector.ts';
import { sendsDifferences } from '../../pipeline/stream-check/settings.ts';
import { forgetRejectedRows, forgetSentRows } from '../../runs/delivery/sent-rows.ts';
import type { Attempt } from '../attempt.ts';
import { openSentRows, type StoredSentRows } from './sent-rows.ts';

/** For a stream that sends only differences: what it has sent. */
export async function openDifferences(
  attempt: Attempt,
  { connector, config }: { connector: AnyDestination; config: unknown },
  target: WriteTarget,
): Promise<StoredSentRows | undefined> {
  const { claim, deps } = attempt;
  if (!connector.identifyRows) return undefined;
  if (!sendsDifferences(claim.stream, connector)) {
    // Rows that are sent in another way are not compared, so nothing is known of them afterwards.
    await forgetSentRows(deps.db, [claim.stream.id]);
    return undefined;
  }
  const { rows_loaded, rows_updated, rows_deleted, bytes_loaded } = claim.stream_run;
  // The read starts again, and comes to the rejected rows again.
  await forgetRejectedRows(deps.db, claim);
  const counts: WriteCounts = { rows_loaded, rows_updated, rows_deleted, bytes_loaded, rows_rejected: 0 };
  const complete = target.complete === true && claim.run.custom_run_plan_id === null;
  return openSentRows(attempt, connector.identifyRows(config, target), { complete, counts });
}
