import { and, eq, gte, inArray, lt } from 'drizzle-orm';
import { z } from 'zod';
import { connectionRuns, RUN_STATUSES, STREAM_RUN_STATUSES, streamRuns } from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { findConnection } from '../access/connection.ts';
import { findRun, type RunKey } from '../access/run.ts';
import { countRows } from '../../api/total-count.ts';
import { moment, PageQuery } from '../../api/wire-types.ts';
import { presentRun, presentStreamRun, type Viewing } from './present.ts';
import { selectRuns, selectStreamRuns } from './query.ts';
import type { ConnectionRunSchema, StreamRunSchema } from './schema.ts';

const oneOrMore = { description: 'One or more; repeat the parameter.' };

export const RunQuery = PageQuery.extend({
  status: z.array(z.enum(RUN_STATUSES)).max(20).optional().meta(oneOrMore),
  created_from: moment().optional().meta({ description: 'Only runs created at this instant or later.' }),
  created_before: moment().optional().meta({ description: 'Only runs created before this instant.' }),
});
export type RunQuery = z.infer<typeof RunQuery>;

export const StreamRunQuery = PageQuery.extend({
  status: z.array(z.enum(STREAM_RUN_STATUSES)).max(20).optional().meta(oneOrMore),
});
export type StreamRunQuery = z.infer<typeof StreamRunQuery>;

export const viewing = (ctx: Ctx): Viewing => ({
  now: ctx.deps.now(),
  internal: ctx.principal.permissions.has('roles.manage'),
});

/** The runs of a connection, newest first. The header `X-Total-Count` is the number that matches the filters. */
export async function listRuns(ctx: Ctx, input: { connection_id: string } & RunQuery): Promise<ConnectionRunSchema[]> {
  const { id } = await findConnection(ctx, input.connection_id);
  const where = and(
    eq(connectionRuns.connection_id, id),
    input.status && inArray(connectionRuns.status, input.status),
    input.created_from === undefined ? undefined : gte(connectionRuns.created_at, input.created_from),
    input.created_before === undefined ? undefined : lt(connectionRuns.created_at, input.created_before),
  );
  const [records, total] = await Promise.all([
    selectRuns(ctx.db, where, input),
    countRows(ctx.db, connectionRuns, where),
  ]);
  ctx.setHeader('X-Total-Count', String(total));
  return records.map((record) => presentRun(record, viewing(ctx)));
}

/** The stream runs of a run, by namespace and name, with the header `X-Total-Count`. */
export async function listStreamRuns(ctx: Ctx, input: RunKey & StreamRunQuery): Promise<StreamRunSchema[]> {
  const { id } = await findRun(ctx, input);
  const where = and(eq(streamRuns.connection_run_id, id), input.status && inArray(streamRuns.status, input.status));
  const [records, total] = await Promise.all([
    selectStreamRuns(ctx.db, where, input),
    countRows(ctx.db, streamRuns, where),
  ]);
  ctx.setHeader('X-Total-Count', String(total));
  return records.map((record) => presentStreamRun(record, viewing(ctx)));
}
