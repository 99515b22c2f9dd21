import { and, eq, inArray, isNull } from 'drizzle-orm';
import { type AccountConnectorRow, accountConnectors } from '../../../../db/schema/index.ts';
import type { AnyDestination, AnySource } from '../../../connectors/contract/connector.ts';
import { findConnector } from '../../../connectors/registry.ts';
import { badRequest } from '../../../platform/errors.ts';
import type { Ctx } from '../../../api/procedure.ts';

/** Source and destination of a connection: rows and connectors. */
export interface Sides {
  source: AccountConnectorRow;
  destination: AccountConnectorRow;
  source_connector: AnySource;
  destination_connector: AnyDestination;
}

/**
 * Source and destination of a new connection. `lock` keeps them from being deleted before the transaction ends;
 * a caller that changes them later has to take the exclusive one.
 * @throws ApiError 400 `same_account_connector`, `invalid_reference` with `field`, `connector_pair_unsupported`.
 */
export async function resolveSides(
  ctx: Ctx,
  ids: { source_id: string; destination_id: string },
  options: { lock: 'share' | 'no key update' | null },
): Promise<Sides> {
  if (ids.source_id === ids.destination_id) {
    throw badRequest('same_account_connector', 'Source and destination must differ', { field: 'destination_id' });
  }
  const query = ctx.db
    .select()
    .from(accountConnectors)
    .where(
      and(
        eq(accountConnectors.account_id, ctx.principal.account_id),
        inArray(accountConnectors.id, [ids.source_id, ids.destination_id]),
        isNull(accountConnectors.deleted_at),
      ),
    )
    .orderBy(accountConnectors.id);
  const rows = await (options.lock ? query.for(options.lock) : query);
  const source = pick(rows, 'source', ids.source_id);
  const destination = pick(rows, 'destination', ids.destination_id);
  return { source, destination, ...connectorsOf(source, destination) };
}

export type SidesSoFar = Omit<Sides, 'destination'> & { destination: AccountConnectorRow | null };

/** The source of a connection whose destination is not selected yet. Tables of PostgreSQL stand for it. */
export async function resolveSource(ctx: Ctx, source_id: string): Promise<SidesSoFar> {
  const rows = await ctx.db
    .select()
    .from(accountConnectors)
    .where(
      and(
        eq(accountConnectors.account_id, ctx.principal.account_id),
        eq(accountConnectors.id, source_id),
        isNull(accountConnectors.deleted_at),
      ),
    );
  const source = pick(rows, 'source', source_id);
  return { source, destination: null, ...connectorsOf(source, { connector_name: 'postgres' }) };
}

function pick(rows: AccountConnectorRow[], type: 'source' | 'destination', id: string): AccountConnectorRow {
  const row = rows.find((one) => one.id === id && one.connector_type === type);
  if (row) return row;
  const field = `${type}_id`;
  throw badRequest('invalid_reference', `${field} is not a ${type} of this account`, { field });
}

/** @throws ApiError 400 `connector_pair_unsupported` when one no longer exists or the destination accepts no rows. */
export function connectorsOf(
  source: Pick<AccountConnectorRow, 'connector_name'>,
  destination: Pick<AccountConnectorRow, 'connector_name'>,
) {
  const source_connector = findConnector('source', source.connector_name);
  const destination_connector = findConnector('destination', destination.connector_name);
  if (!source_connector || !destination_connector?.supported_destination_sync_modes.length) {
    throw badRequest(
      'connector_pair_unsupported',
      `${source.connector_name} cannot be loaded into ${destination.connector_name}`,
      { source_connector_name: source.connector_name, destination_connector_name: destination.connector_name },
    );
  }
  return { source_connector, destination_connector };
}
