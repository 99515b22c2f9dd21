import { eq, sql } from 'drizzle-orm';
import { z } from 'zod';
import { streamRuns } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { count, whole } from '../../api/wire-types.ts';
import { findRun, type RunKey } from '../access/run.ts';

const COMPARED = 10;

const EarlierRun = z.object({
  connection_run_id: z.string(),
  number: whole(),
  rows_loaded: count(),
  duration_ms: count(),
});
type EarlierRun = z.infer<typeof EarlierRun>;

export const StreamTrend = z
  .object({
    stream_run_id: z.string(),
    stream_id: z.string(),
    stream_name: z.string(),
    namespace: z.string().nullable(),
    median_rows_loaded: count().nullable().meta({ description: 'Null without earlier runs.' }),
    median_duration_ms: count().nullable().meta({ description: 'Null without earlier runs.' }),
    runs: z.array(EarlierRun).meta({ description: 'Oldest first.' }),
  })
  .meta({ id: 'StreamTrend' });
export type StreamTrend = z.infer<typeof StreamTrend>;

/** The streams of a run beside their last successful runs before it, of the same kind. One statement. */
export async function listTrends(ctx: Ctx, key: RunKey): Promise<StreamTrend[]> {
  const run = await findRun(ctx, key);
  // Drizzle writes a column of the only table of a query without its table, which would name that of `p` here.
  const earlier = sql<EarlierRun[]>`(
    select coalesce(json_agg(last order by last.number), '[]') from (
      select r.id as connection_run_id, r.number, p.rows_loaded,
        greatest(0, round(extract(epoch from p.finished_at - p.started_at) * 1000))::bigint as duration_ms
      from stream_runs p join connection_runs r on r.id = p.connection_run_id
      where p.stream_id = stream_runs.stream_id and p.status = 'succeeded' and p.finished_at < ${run.created_at}
        and p.started_at is not null and r.run_type = ${run.run_type}
      order by p.finished_at desc limit ${COMPARED}) last)`;
  const streams = await ctx.db
    .select({
      stream_run_id: streamRuns.id,
      stream_id: streamRuns.stream_id,
      stream_name: streamRuns.stream_name,
      namespace: streamRuns.namespace,
      runs: earlier,
    })
    .from(streamRuns)
    .where(eq(streamRuns.connection_run_id, run.id))
    .orderBy(sql`coalesce(${streamRuns.namespace}, '') collate "C"`, sql`${streamRuns.stream_name} collate "C"`);
  return streams.map((stream) => ({
    ...stream,
    median_rows_loaded: median(stream.runs.map(({ rows_loaded }) => rows_loaded)),
    median_duration_ms: median(stream.runs.map(({ duration_ms }) => duration_ms)),
  }));
}

function median(values: number[]): number | null {
  if (values.length === 0) return null;
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : Math.round((sorted[middle - 1]! + sorted[middle]!) / 2);
}
