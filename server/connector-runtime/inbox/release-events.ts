import { and, eq, gt, sql } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  accountConnectors,
  connections,
  connectionStreams,
  webhookEvents,
  webhookInboxes,
  type WebhookInboxRow,
} from '../../../db/schema/index.ts';
import { findConnector } from '../../connectors/registry.ts';
import type { Deps } from '../../deps.ts';

const BATCH_ROWS = 2000;
/** Of the limits. Above it, events that were read make room before their retention is over. */
const CROWDED = 0.8;

/**
 * Deletes events that every connection has loaded and whose retention is over, and all events of deleted sources. An event
 * counts as loaded once no selected stream of a connection contains it and stands before it.
 */
export async function releaseWebhookEvents(deps: Pick<Deps, 'db' | 'now'>): Promise<number> {
  const filled = await deps.db
    .select({ inbox: webhookInboxes, row: accountConnectors })
    .from(webhookInboxes)
    .innerJoin(accountConnectors, eq(accountConnectors.id, webhookInboxes.account_connector_id))
    .where(gt(webhookInboxes.stored_events, 0));
  let released = 0;
  for (const one of filled) {
    for (let count = BATCH_ROWS; count === BATCH_ROWS; released += count) count = await releaseBatch(deps, one);
  }
  return released;
}

interface Filled {
  inbox: WebhookInboxRow;
  row: AccountConnectorRow;
}

async function releaseBatch({ db, now }: Pick<Deps, 'db' | 'now'>, { inbox, row }: Filled): Promise<number> {
  const releasable = row.deleted_at === null ? loadedBefore({ inbox, row }, now()) : sql`true`;
  const id = inbox.account_connector_id;
  if (releasable === null) return 0;
  return db.transaction(async (tx) => {
    const positions = sql`select e.position from ${webhookEvents} e where e.account_connector_id = ${id}
      and ${releasable} order by e.position limit ${BATCH_ROWS}`;
    const deleted = await tx
      .delete(webhookEvents)
      .where(and(eq(webhookEvents.account_connector_id, id), sql`${webhookEvents.position} in (${positions})`))
      .returning({ position: webhookEvents.position, bytes: webhookEvents.bytes });
    if (deleted.length === 0) return 0;
    const last = deleted.reduce((most, { position }) => Math.max(most, position), 0);
    // Last, because events that arrive wait for this lock.
    await tx
      .update(webhookInboxes)
      .set({
        stored_events: sql`${webhookInboxes.stored_events} - ${deleted.length}`,
        stored_bytes: sql`${webhookInboxes.stored_bytes} - ${deleted.reduce((sum, { bytes }) => sum + bytes, 0)}`,
        released_position: sql`greatest(${webhookInboxes.released_position}, ${last})`,
      })
      .where(eq(webhookInboxes.account_connector_id, id));
    return deleted.length;
  });
}

/** Null: the connector is not available any more, so nothing is known about its streams. */
function loadedBefore({ inbox, row }: Filled, now: Date) {
  const receiver = findConnector('source', row.connector_name)?.receiver;
  if (!receiver) return null;
  const { streams } = receiver;
  const limits = receiver.limits(row.parameters);
  const crowded = inbox.stored_events > CROWDED * limits.events || inbox.stored_bytes > CROWDED * limits.bytes;
  const kept_from = new Date(now.getTime() - (crowded ? 0 : limits.retention_days * 86_400_000)).toISOString();
  const readers = sql`from ${connections} c join ${connectionStreams} s on s.connection_id = c.id
    where c.source_id = ${row.id} and c.deleted_at is null and s.selected`;
  return sql`e.received_at < ${kept_from}::timestamptz and exists (select 1 ${readers}) and not exists (
    select 1 ${readers} and (s.name = ${streams.all} or s.name = ${streams.by_type} || e.event_type)
      and case when s.state->>'cursor' ~ '^\\d{1,18}$' then (s.state->>'cursor')::bigint else 0 end < e.position)`;
}
