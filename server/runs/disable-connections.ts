import { and, eq, sql } from 'drizzle-orm';
import { connections } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import { disableConnection } from '../catalog/disable-connection.ts';

/** Both must be reached: the count alone would disable a 5-minute schedule within hours, the days alone a weekly one at once. */
const FAILED_RUNS = 30;
const FAILED_DAYS = 7;

/** After a failed run: disables a connection that has been failing repeatedly. */
export const disableIfRepeatedlyFailing = (db: Db, connection_id: string): Promise<void> =>
  disableConnection(
    db,
    and(
      eq(connections.id, connection_id),
      sql`${connections.consecutive_failures} >= ${FAILED_RUNS}`,
      sql`coalesce(${connections.last_succeeded_at}, ${connections.created_at})
        < now() - make_interval(days => ${FAILED_DAYS})`,
    ),
    {
      status_reason: 'too_many_failures',
      because: ({ consecutive_failures }) => `${consecutive_failures} runs in a row failed`,
    },
  );

const BROKEN_DAYS = 7;

/** Disables connections whose source or destination has been broken for a week. */
export async function disableBroken({ db }: Pick<Deps, 'db'>): Promise<void> {
  const affected = await db.execute<{ id: string; end_id: string; name: string }>(sql`
    select c.id, b.id as end_id, b.connector_type || ' "' || b.name || '"' as name from account_connectors b
    join lateral (
      select max(e.occurred_at) as since from events e
      where e.account_id = b.account_id and e.event = 'account_connector_broken' and e.account_connector_id = b.id
    ) broken on broken.since < now() - make_interval(days => ${BROKEN_DAYS})
    join connections c on b.id in (c.source_id, c.destination_id)
      and c.account_id = b.account_id and c.status = 'active' and c.deleted_at is null
    where b.status = 'broken' and b.deleted_at is null`);
  for (const { id, end_id, name } of affected) {
    const stillBroken = sql`exists (select from account_connectors b where b.id = ${end_id} and b.status = 'broken')`;
    await db.transaction((tx) =>
      disableConnection(tx, and(eq(connections.id, id), stillBroken), {
        status_reason: 'account_connector_broken',
        because: () => `its ${name} has been broken for ${BROKEN_DAYS} days`,
      }),
    );
  }
}
