import { eq, sql } from 'drizzle-orm';
import { webhookEvents, webhookInboxes } from '../../../db/schema/index.ts';
import type { EventRange, Inbox, InboxStanding, StoredEvent } from '../../connectors/contract/connector.ts';
import type { Deps } from '../../deps.ts';

const MAX_ROWS = 5000;
const MAX_BYTES = 1_000_000;

/** The events of a source, for its connector. */
export function inboxOf({ db }: Pick<Deps, 'db'>, account_connector_id: string): Inbox {
  return {
    standing: async (): Promise<InboxStanding> => {
      const [inbox] = await db
        .select()
        .from(webhookInboxes)
        .where(eq(webhookInboxes.account_connector_id, account_connector_id));
      return {
        last_position: String(inbox?.last_position ?? 0),
        released_position: String(inbox?.released_position ?? 0),
        types: inbox?.event_types ?? [],
        stored_events: inbox?.stored_events ?? 0,
      };
    },
    read: async ({ after, up_to, type }: EventRange): Promise<StoredEvent[]> => {
      const ofType = type === undefined ? sql`` : sql`and event_type = ${type}`;
      const rows = await db.execute<Record<keyof StoredEvent, string> & { type: string | null }>(sql`
        select position::text, event_id as id, event_type as type, headers, body, bytes,
          to_char(received_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS+00') as received_at
        from (
          select *, sum(bytes) over (order by position) - bytes as before from ${webhookEvents}
          where account_connector_id = ${account_connector_id} and position > ${after}::bigint
            and position <= ${up_to}::bigint ${ofType}
          order by position limit ${MAX_ROWS}
        ) as next
        where before < ${MAX_BYTES} order by position`);
      return rows.map((row) => ({ ...row, bytes: Number(row.bytes) }));
    },
  };
}
