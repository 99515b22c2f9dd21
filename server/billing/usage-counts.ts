import { and, count, eq, isNull, ne, type SQL } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { accountConnectors, connections, triggers, users } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { CountedLimit } from '../pipeline/billing-plans.ts';

/** What each limit counts: objects that exist now. */
const COUNTED: Record<CountedLimit, { noun: string; from: PgTable; where(account_id: string): SQL | undefined }> = {
  max_connections: {
    noun: 'connections',
    from: connections,
    where: (id) => and(eq(connections.account_id, id), isNull(connections.deleted_at)),
  },
  max_sources: { noun: 'sources', from: accountConnectors, where: (id) => connectorsOf(id, 'source') },
  max_destinations: { noun: 'destinations', from: accountConnectors, where: (id) => connectorsOf(id, 'destination') },
  max_users: {
    noun: 'users',
    from: users,
    where: (id) =>
      and(eq(users.account_id, id), isNull(users.deleted_at), eq(users.kind, 'person'), ne(users.status, 'disabled')),
  },
  max_triggers: {
    noun: 'triggers',
    from: triggers,
    where: (id) => and(eq(triggers.account_id, id), isNull(triggers.deleted_at), eq(triggers.is_system, false)),
  },
};

const connectorsOf = (account_id: string, type: 'source' | 'destination') =>
  and(
    eq(accountConnectors.account_id, account_id),
    eq(accountConnectors.connector_type, type),
    isNull(accountConnectors.deleted_at),
  );

/** The noun for what a limit counts, such as `connections`. */
export const nounOf = (limit: CountedLimit): string => COUNTED[limit].noun;

/** The number of objects that a limit counts, only those that match `also` if it is given. */
export async function countOf(db: Db, account_id: string, limit: CountedLimit, also?: SQL): Promise<number> {
  const { from, where } = COUNTED[limit];
  const [row] = await db
    .select({ n: count() })
    .from(from)
    .where(and(where(account_id), also));
  return row?.n ?? 0;
}
