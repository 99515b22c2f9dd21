import { and, eq } from 'drizzle-orm';
import { streamRuns } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Claim } from './claim-stream.ts';
import { emitStreamEvent } from '../events/run-events.ts';

/** Marks a running stream as rate limited and emits the event, unless it is marked already or the claim is lost. */
export async function markRateLimited(db: Db, { run, stream_run }: Claim, rate_limited_until: string): Promise<void> {
  await db.transaction(async (tx) => {
    const [stream] = await tx
      .update(streamRuns)
      .set({ status: 'rate_limited', rate_limited_until })
      .where(
        and(eq(streamRuns.id, stream_run.id), eq(streamRuns.fence, stream_run.fence), eq(streamRuns.status, 'running')),
      )
      .returning();
    if (stream) await emitStreamEvent(tx, { event: 'stream_run_rate_limited', run, stream });
  });
}
