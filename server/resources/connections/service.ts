import { eq } from 'drizzle-orm';
import { connections } from '../../../db/schema/index.ts';
import { notFound } from '../../platform/errors.ts';
import { forgetSentRowsOf } from '../../runs/delivery/sent-rows.ts';
import type { Ctx } from '../../api/procedure.ts';
import { findConnection, lockConnection, stopRunsOf } from '../access/connection.ts';
import { isId } from '../../api/wire-types.ts';
import { emitConnectionEvent } from './events.ts';
import { presentConnection } from './present.ts';
import { selectConnection } from './query.ts';
import type { ConnectionSchema } from './schema.ts';

export async function getConnection(ctx: Ctx, input: { connection_id: string }): Promise<ConnectionSchema> {
  const key = { id: input.connection_id, account_id: ctx.principal.account_id };
  const record = isId(key.id) ? await selectConnection(ctx.db, key) : undefined;
  if (!record) throw notFound('Connection');
  return presentConnection(record, ctx.deps.now());
}

/** Soft-deletes: stops live runs and frees the name; runs, usage and events stay. */
export async function deleteConnection(ctx: Ctx, input: { connection_id: string }): Promise<void> {
  const { id } = await findConnection(ctx, input.connection_id);
  await stopRunsOf(ctx, id, 'connection_deleted');
  const connection = await lockConnection(ctx, id);
  // A run may have started before the lock was acquired.
  await stopRunsOf(ctx, id, 'connection_deleted');
  await ctx.db
    .update(connections)
    .set({ deleted_at: ctx.deps.now().toISOString(), next_run_at: null, updated_by: ctx.principal.user_id })
    .where(eq(connections.id, id));
  await forgetSentRowsOf(ctx.db, id);
  await emitConnectionEvent(ctx, 'connection_deleted', { connection, changed_fields: [] });
}
