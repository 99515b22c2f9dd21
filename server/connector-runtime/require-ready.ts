import { and, inArray, ne } from 'drizzle-orm';
import { type AccountConnectorRow, accountConnectors } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { type ApiError, badRequest } from '../platform/errors.ts';

/** @throws ApiError 400 `account_connector_not_ready` with `account_connector_id`, `status` and `status_message`. */
export async function requireReadyConnectors(db: Db, ids: string[]): Promise<void> {
  const [unready] = await unreadyConnectors(db, ids);
  if (unready) throw notReady(unready);
}

/** Those of the account connectors that cannot be used. */
export const unreadyConnectors = (db: Db, ids: string[]): Promise<AccountConnectorRow[]> =>
  db
    .select()
    .from(accountConnectors)
    .where(and(inArray(accountConnectors.id, ids), ne(accountConnectors.status, 'active')));

export const notReady = (unready: AccountConnectorRow): ApiError =>
  badRequest(
    'account_connector_not_ready',
    `The ${unready.connector_type} "${unready.name}" is not ready. Fix its settings and test it again`,
    {
      account_connector_id: unready.id,
      status: unready.status,
      status_message: unready.status_message,
    },
  );
