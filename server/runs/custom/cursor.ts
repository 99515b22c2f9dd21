import { and, asc, desc, eq, sql } from 'drizzle-orm';
import { connectionRuns, connectionStreams, type CustomRunPlanRow, streamRuns } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { StreamState } from '../../connectors/contract/connector.ts';
import { microsOf } from '../../connectors/cells/timestamp-text.ts';
import { stateSetTo } from '../set-state.ts';
import type { PlannedChunk } from '../../pipeline/custom-run/plan.ts';

interface ChunkOutcome {
  stream_id: string;
  chunk_index: number;
  succeeded: boolean;
  state: StreamState | null;
}

/**
 * Moves the live cursors of a plan's streams to the end of its chunks: up to the first chunk, by date, that did not
 * succeed, and never backwards. The plan must be locked and none of its runs live.
 */
export async function moveCursors(db: Db, plan: CustomRunPlanRow): Promise<void> {
  const chunks = (plan.decision as unknown as { chunks: PlannedChunk[] }).chunks;
  const outcomes = await lastOutcomes(db, plan.id);
  for (const stream_id of new Set(outcomes.map((one) => one.stream_id))) {
    const reached = reachedState(
      chunks,
      outcomes.filter((one) => one.stream_id === stream_id),
    );
    if (reached) await moveCursor(db, stream_id, reached);
  }
}

/** The outcome of the last run of each chunk, per stream. */
async function lastOutcomes(db: Db, plan_id: string): Promise<ChunkOutcome[]> {
  const rows = await db
    .selectDistinctOn([streamRuns.stream_id, connectionRuns.chunk_index], {
      stream_id: streamRuns.stream_id,
      chunk_index: connectionRuns.chunk_index,
      status: streamRuns.status,
      state: streamRuns.state_after,
    })
    .from(streamRuns)
    .innerJoin(connectionRuns, eq(connectionRuns.id, streamRuns.connection_run_id))
    .where(eq(connectionRuns.custom_run_plan_id, plan_id))
    .orderBy(asc(streamRuns.stream_id), asc(connectionRuns.chunk_index), desc(connectionRuns.number));
  return rows.map(({ stream_id, chunk_index, status, state }) => ({
    stream_id,
    chunk_index: chunk_index ?? 0,
    succeeded: status === 'succeeded',
    state,
  }));
}

function reachedState(chunks: readonly PlannedChunk[], outcomes: readonly ChunkOutcome[]): StreamState | null {
  const byDate = chunks.toSorted((a, b) => ((a.start_date ?? '') < (b.start_date ?? '') ? -1 : 1));
  let reached: StreamState | null = null;
  for (const chunk of byDate) {
    const outcome = outcomes.find((one) => one.chunk_index === chunk.index);
    if (!outcome && chunk.skip_reason === 'already_succeeded') continue;
    if (!outcome?.succeeded) break;
    reached = outcome.state ?? reached;
  }
  return reached;
}

async function moveCursor(db: Db, stream_id: string, state: StreamState): Promise<void> {
  const [stream] = await db
    .select({ state: connectionStreams.state })
    .from(connectionStreams)
    .where(eq(connectionStreams.id, stream_id))
    .for('no key update');
  if (!stream || state.cursor === null) return;
  const live = stream.state?.cursor ?? null;
  if (live !== null && !isAfter(state.cursor, live)) return;
  await db
    .update(connectionStreams)
    .set({
      ...stateSetTo(state),
      cursor_updated_at: sql`clock_timestamp()`,
    })
    .where(and(eq(connectionStreams.id, stream_id)));
}

/** Compares cursors, which are texts, as timestamps or numbers if both can be read as such. */
export function isAfter(a: string, b: string): boolean {
  const times = [microsOf(a), microsOf(b)] as const;
  if (!times.some(Number.isNaN)) return times[0] > times[1];
  if (/^-?\d+$/.test(a) && /^-?\d+$/.test(b)) return BigInt(a) > BigInt(b);
  const numbers = [Number(a), Number(b)] as const;
  if (a !== '' && b !== '' && !numbers.some(Number.isNaN)) return numbers[0] > numbers[1];
  return a > b;
}
