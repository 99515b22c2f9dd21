import { eq, sql } from 'drizzle-orm';
import { deliveredBatches, streamRuns } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { DeliveredBatch } from '../../connectors/contract/connector.ts';
import { findConnector } from '../../connectors/registry.ts';
import { type Claim, stillHeld } from '../claim-stream.ts';

/** Whether batches to the destination are recorded one by one. */
export const recordsDeliveries = ({ destination }: Pick<Claim, 'destination'>): boolean =>
  findConnector('destination', destination.connector_name)?.capabilities?.at_least_once === true;

/** Batches of a stream run that have arrived since its last checkpoint, by key. */
export async function deliveredBy(db: Db, stream_run_id: string): Promise<Map<string, DeliveredBatch>> {
  const rows = await db.select().from(deliveredBatches).where(eq(deliveredBatches.stream_run_id, stream_run_id));
  return new Map(rows.map(({ key, ...batch }) => [key, batch]));
}

/** False if this worker has lost its claim. */
export async function recordDelivery(db: Db, claim: Claim, batch: DeliveredBatch & { key: string }): Promise<boolean> {
  const held = db
    .select({
      stream_run_id: streamRuns.id,
      key: sql<string>`${batch.key}`.as('key'),
      rows: sql<number>`${batch.rows}::int`.as('rows'),
      rejected: sql<number>`${batch.rejected}::int`.as('rejected'),
    })
    .from(streamRuns)
    .where(stillHeld(claim));
  const rows = await db.insert(deliveredBatches).select(held).returning({ key: deliveredBatches.key });
  return rows.length > 0;
}

/** A stream run that has ended, or reached a checkpoint, does not send them again. */
export async function forgetDeliveries(db: Db, stream_run_id: string): Promise<void> {
  await db.delete(deliveredBatches).where(eq(deliveredBatches.stream_run_id, stream_run_id));
}
