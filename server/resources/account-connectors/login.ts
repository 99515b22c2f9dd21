import { and, eq, isNull } from 'drizzle-orm';
import { type AccountConnectorRow, accountConnectors } from '../../../db/schema/index.ts';
import { findConnector } from '../../connectors/registry.ts';
import { openParameters } from '../../connector-runtime/connector-secrets.ts';
import { badRequest } from '../../platform/errors.ts';
import { actorOf, type Ctx, requirePermission } from '../../api/procedure.ts';
import { discoverCatalogTask } from '../access/discovery-task.ts';
import { emitTransition } from './events.ts';
import { checkParameters } from './parameters.ts';
import { findAccountConnector } from './query.ts';
import { testRow } from '../../connector-runtime/test-outcome.ts';

/**
 * Signs in to the remote system with the stored credentials by running the connector's check. Returns the new status,
 * `active`.
 * @throws ApiError 400 `login_not_supported`, `missing_parameter`, `upstream_error` with `upstream_code`.
 */
export async function login(ctx: Ctx, input: { account_connector_id: string }): Promise<string> {
  const row = await findAccountConnector(ctx, input.account_connector_id, false);
  requirePermission(ctx, `${row.connector_type}s.update`);
  await refuseUnready(ctx, row);
  const { outcome, error, passed, message } = await testRow(ctx.deps, row, actorOf(ctx.principal));
  await ctx.db.transaction(async (db) => {
    const inside = { ...ctx, db };
    const [changed] = await db
      .update(accountConnectors)
      .set(outcome)
      .where(
        and(
          eq(accountConnectors.id, row.id),
          eq(accountConnectors.revision, row.revision),
          isNull(accountConnectors.deleted_at),
        ),
      )
      .returning();
    // The row changed in the meantime: the result is about outdated settings.
    if (!changed) return;
    await emitTransition(inside, row.status, changed);
    const undiscovered = changed.catalog_status === 'never' || changed.catalog_status === 'failed';
    if (passed && row.connector_type === 'source' && undiscovered) {
      await discoverCatalogTask(inside, { account_connector_id: row.id, connection_id: null });
    }
  });
  if (passed) return outcome.status;
  throw badRequest('upstream_error', message ?? 'The check failed', {
    upstream_code: error?.code ?? 'check_failed',
    status: outcome.status,
  });
}

/** @throws ApiError 400 `login_not_supported`, `missing_parameter` */
export async function refuseUnready(ctx: Ctx, row: AccountConnectorRow): Promise<void> {
  const connector = findConnector(row.connector_type as 'source', row.connector_name);
  if (!connector) {
    throw badRequest('login_not_supported', `Connector "${row.connector_name}" is no longer available`);
  }
  const { lacks_credentials } = await checkParameters(ctx, connector, {}, openParameters(ctx.deps, row));
  if (!lacks_credentials) return;
  throw badRequest('missing_parameter', 'The credentials are missing', { field: 'parameters' });
}
