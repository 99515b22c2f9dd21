import { and, eq, inArray, isNull } from 'drizzle-orm';
import { type ConnectionRow, connectionRuns, connections } from '../../../db/schema/index.ts';
import { stopLiveRuns } from '../../runs/stop.ts';
import { LIVE_RUN } from '../../pipeline/run-states.ts';
import { notFound } from '../../platform/errors.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { isId } from '../../api/wire-types.ts';

const owned = (ctx: Ctx, id: string) =>
  and(eq(connections.id, id), eq(connections.account_id, ctx.principal.account_id), isNull(connections.deleted_at));

/** The caller's connection. @throws ApiError 404 */
export async function findConnection(ctx: Ctx, id: string): Promise<ConnectionRow> {
  const [row] = isId(id) ? await ctx.db.select().from(connections).where(owned(ctx, id)) : [];
  if (!row) throw notFound('Connection');
  return row;
}

/** The caller's connection, locked until the transaction ends, so that it does not change and no run of it starts. */
export async function lockConnection(ctx: Ctx, id: string): Promise<ConnectionRow> {
  const [row] = isId(id) ? await ctx.db.select().from(connections).where(owned(ctx, id)).for('no key update') : [];
  if (!row) throw notFound('Connection');
  return row;
}

/** Ids of the live runs of a connection, oldest first. */
export async function liveRunIds(ctx: Ctx, connection_id: string): Promise<string[]> {
  const rows = await ctx.db
    .select({ id: connectionRuns.id })
    .from(connectionRuns)
    .where(and(eq(connectionRuns.connection_id, connection_id), inArray(connectionRuns.status, LIVE_RUN)))
    .orderBy(connectionRuns.number);
  return rows.map((row) => row.id);
}

/** Must be called before the connection is locked. */
export const stopRunsOf = async (ctx: Ctx, connection_id: string, reason: string): Promise<void> =>
  void (await stopLiveRuns(ctx.db, ctx.deps.queue, { connection_id, actor: actorOf(ctx.principal), reason }));
