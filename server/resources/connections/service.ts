import { and, count, eq, isNull } from 'drizzle-orm';
import { connections } from '../../../db/schema/index.ts';
import { notFound } from '../../lib/errors.ts';
import type { Ctx } from '../../procedure.ts';
import { findConnection, lockConnection, stopLiveRuns } from '../owned-connection.ts';
import { isId, type Page } from '../wire.ts';
import { emitConnectionEvent } from './events.ts';
import { presentConnection } from './present.ts';
import { selectConnection, selectConnections } from './query.ts';
import type { ConnectionSchema } from './schema.ts';

/** The account's connections, newest first. */
export async function listConnections(ctx: Ctx, page: Page): Promise<ConnectionSchema[]> {
  const { account_id } = ctx.principal;
  const [records, [total]] = await Promise.all([
    selectConnections(ctx.db, account_id, page),
    ctx.db
      .select({ count: count() })
      .from(connections)
      .where(and(eq(connections.account_id, account_id), isNull(connections.deleted_at))),
  ]);
  ctx.setHeader('X-Total-Count', String(total?.count ?? 0));
  const now = ctx.deps.now();
  return records.map((record) => presentConnection(record, now));
}

export async function getConnection(ctx: Ctx, input: { connection_id: string }): Promise<ConnectionSchema> {
  const key = { id: input.connection_id, account_id: ctx.principal.account_id };
  const record = isId(key.id) ? await selectConnection(ctx.db, key) : undefined;
  if (!record) throw notFound('Connection');
  return presentConnection(record, ctx.deps.now());
}

/** Leaves a tombstone: runs, usage and events stay, the name is free again, what runs is stopped. */
export async function deleteConnection(ctx: Ctx, input: { connection_id: string }): Promise<void> {
  const { id } = await findConnection(ctx, input.connection_id);
  await stopLiveRuns(ctx, id, 'connection_deleted');
  const connection = await lockConnection(ctx, id);
  // A run may have started before the lock was there.
  await stopLiveRuns(ctx, id, 'connection_deleted');
  await ctx.db
    .update(connections)
    .set({ deleted_at: ctx.deps.now().toISOString(), next_run_at: null, updated_by: ctx.principal.user_id })
    .where(eq(connections.id, id));
  await emitConnectionEvent(ctx, 'connection_deleted', { connection, changed_fields: [] });
}
