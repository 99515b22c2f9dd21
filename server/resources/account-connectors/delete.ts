import { eq } from 'drizzle-orm';
import { accountConnectors, changeReaders } from '../../../db/schema/index.ts';
import { badRequest } from '../../platform/errors.ts';
import { type Ctx, requirePermission } from '../../api/procedure.ts';
import { emitAccountConnectorEvent } from './events.ts';
import { connectionsUsing, findAccountConnector } from './query.ts';

/**
 * Keeps the row without secrets, for usage and audit. The name can be used again.
 * @throws ApiError 400 `account_connector_in_use` with `connection_ids`.
 */
export async function deleteAccountConnector(ctx: Ctx, input: { account_connector_id: string }): Promise<void> {
  const row = await findAccountConnector(ctx, input.account_connector_id, true);
  requirePermission(ctx, `${row.connector_type}s.delete`);
  const connection_ids = await connectionsUsing(ctx, row.id);
  if (connection_ids.length > 0) {
    throw badRequest('account_connector_in_use', 'Connections still use it. Delete them first', { connection_ids });
  }
  const [reader] = await ctx.db.select().from(changeReaders).where(eq(changeReaders.source_id, row.id)).limit(1);
  await ctx.db
    .update(accountConnectors)
    .set({
      deleted_at: ctx.deps.now().toISOString(),
      // Releasing a CDC consumer still needs the secrets; they are deleted afterwards.
      ...(!reader && { secrets: null, ssh_tunnel: null }),
    })
    .where(eq(accountConnectors.id, row.id));
  await emitAccountConnectorEvent(ctx, 'account_connector_deleted', { row });
}
