import { and, asc, eq } from 'drizzle-orm';
import { z } from 'zod';
import { rejectedRows, SENT_OPERATIONS, streamRuns } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { countRows } from '../../api/total-count.ts';
import { instant, type PageQuery } from '../../api/wire-types.ts';
import { notFound } from '../../platform/errors.ts';
import { findRun, type RunKey } from '../access/run.ts';

export const RejectedRowSchema = z
  .object({
    id: z.uuid(),
    operation: z.enum(SENT_OPERATIONS),
    key: z.string().meta({ description: 'The match key: a list of values, as JSON.' }),
    code: z.string(),
    message: z.string(),
    status: z.int().nullable().meta({ description: 'Status of the response. Null: the row was not sent.' }),
    answer: z.string().nullable().meta({ description: 'The first 2,000 characters of the response.' }),
    created_at: instant(),
  })
  .meta({ id: 'RejectedRow' });
type RejectedRow = z.infer<typeof RejectedRowSchema>;

/** Rows that an application did not accept, in the order of its responses, with the header `X-Total-Count`. */
export async function listRejectedRows(
  ctx: Ctx,
  input: RunKey & PageQuery & { stream_run_id: string },
): Promise<RejectedRow[]> {
  const run = await findRun(ctx, input);
  const [stream_run] = await ctx.db
    .select({ id: streamRuns.id })
    .from(streamRuns)
    .where(and(eq(streamRuns.id, input.stream_run_id), eq(streamRuns.connection_run_id, run.id)));
  if (!stream_run) throw notFound('Stream run');
  const where = eq(rejectedRows.stream_run_id, stream_run.id);
  const [rows, total] = await Promise.all([
    ctx.db
      .select()
      .from(rejectedRows)
      .where(where)
      .orderBy(asc(rejectedRows.id))
      .limit(input.limit ?? 1000)
      .offset(input.offset),
    countRows(ctx.db, rejectedRows, where),
  ]);
  ctx.setHeader('X-Total-Count', String(total));
  return rows.map(({ account_id: _account, stream_run_id: _stream_run, ...row }) => row);
}
