import { and, eq, exists, isNotNull, sql } from 'drizzle-orm';
import { connectionStreams, streamRuns } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Parking } from '../connectors/contract/connector.ts';
import { type Claim, stillHeld } from './claim-stream.ts';

/** Leaves a stream behind, while this worker holds it. @returns false if it has no position, so nothing is left behind */
export async function parkStream(db: Db, claim: Claim, parked: Parking): Promise<boolean> {
  const held = db.select({ one: sql`1` }).from(streamRuns).where(stillHeld(claim));
  const rows = await db
    .update(connectionStreams)
    .set({ state: sql`${connectionStreams.state} || ${JSON.stringify({ parked })}::text::jsonb` })
    .where(and(eq(connectionStreams.id, claim.stream.id), isNotNull(connectionStreams.state), exists(held)))
    .returning({ id: connectionStreams.id });
  return rows.length > 0;
}

/** The state is one from which the stream is read on. */
export const isNotParked = sql`(${connectionStreams.state} is not null and ${connectionStreams.state} -> 'parked' is null)`;
