import { and, inArray, ne } from 'drizzle-orm';
import { accountConnectors } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { badRequest } from '../platform/errors.ts';

/** @throws ApiError 400 `account_connector_not_ready` with `account_connector_id`, `status` and `status_message`. */
export async function requireReadyConnectors(db: Db, ids: string[]): Promise<void> {
  const [unready] = await db
    .select()
    .from(accountConnectors)
    .where(and(inArray(accountConnectors.id, ids), ne(accountConnectors.status, 'active')))
    .limit(1);
  if (!unready) return;
  throw badRequest(
    'account_connector_not_ready',
    `The ${unready.connector_type} "${unready.name}" is not ready. Fix its settings and test it again`,
    {
      account_connector_id: unready.id,
      status: unready.status,
      status_message: unready.status_message,
    },
  );
}
