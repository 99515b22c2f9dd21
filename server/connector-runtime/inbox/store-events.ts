import { and, eq, isNull, sql } from 'drizzle-orm';
import { accountConnectors, webhookEvents, webhookInboxes } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { AcceptedEvent } from '../../connectors/contract/connector.ts';
import type { Deps } from '../../deps.ts';
import type { InboxTarget } from './target.ts';

/** What became of an event. `changed`: nothing was stored, because the source changed after the request was verified. */
export type StoreOutcome = 'stored' | 'repeated' | 'full' | 'changed' | 'gone';

/** Of a row beside its texts. */
const ROW_BYTES = 100;
/** A sender with a type per event would fill the catalog. Events of later types are in the stream of all events. */
const MAX_TYPES = 500;

interface Sized {
  event: AcceptedEvent;
  headers: string;
  bytes: number;
}

/** Stores events of one source in one commit. Resolves after the commit, to one outcome for each event. */
export async function storeEvents(
  { db, now }: Pick<Deps, 'db' | 'now'>,
  target: InboxTarget,
  events: readonly AcceptedEvent[],
): Promise<StoreOutcome[]> {
  const received_at = now();
  return db.transaction(async (tx) => {
    const inbox = await lockInbox(tx, target.account_connector_id);
    if (!inbox) return events.map(() => 'gone');
    const isSame = inbox.revision === target.revision && inbox.address_version === target.address_version;
    if (!isSame) return events.map(() => 'changed');
    const sized = fitting(events.map(sizeOf), inbox, target.limits);
    const first = Math.max(inbox.last_position + 1, received_at.getTime() * 1000);
    const stored = await insert(tx, { target, first, received_at: received_at.toISOString(), sized });
    const added = sized.filter((_, at) => stored.has(first + at));
    const bytes = added.reduce((sum, one) => sum + one.bytes, 0);
    const types = [...new Set([...inbox.event_types, ...added.flatMap(({ event }) => event.type ?? [])])];
    await tx
      .update(webhookInboxes)
      .set({
        last_position: first + sized.length,
        stored_events: sql`${webhookInboxes.stored_events} + ${added.length}`,
        stored_bytes: sql`${webhookInboxes.stored_bytes} + ${bytes}`,
        received_events: sql`${webhookInboxes.received_events} + ${added.length}`,
        repeated_events: sql`${webhookInboxes.repeated_events} + ${sized.length - added.length}`,
        last_received_at: received_at.toISOString(),
        ...(types.length > inbox.event_types.length && { event_types: types.slice(0, MAX_TYPES) }),
      })
      .where(eq(webhookInboxes.account_connector_id, target.account_connector_id));
    return events.map((_, at) => (at >= sized.length ? 'full' : stored.has(first + at) ? 'stored' : 'repeated'));
  });
}

/** Held until the commit: the next positions are assigned after these are visible, so readers skip nothing. */
async function lockInbox(tx: Db, id: string) {
  const [found] = await tx
    .select({ inbox: webhookInboxes, revision: accountConnectors.revision })
    .from(webhookInboxes)
    .innerJoin(accountConnectors, eq(accountConnectors.id, webhookInboxes.account_connector_id))
    .where(and(eq(webhookInboxes.account_connector_id, id), isNull(accountConnectors.deleted_at)))
    .for('no key update', { of: webhookInboxes });
  return found && { ...found.inbox, revision: found.revision };
}

function sizeOf(event: AcceptedEvent): Sized {
  const headers = JSON.stringify(event.headers);
  return { event, headers, bytes: Buffer.byteLength(event.body) + headers.length + ROW_BYTES };
}

/** The first events that there is room for. */
function fitting(
  sized: Sized[],
  inbox: { stored_events: number; stored_bytes: number },
  limits: InboxTarget['limits'],
): Sized[] {
  const room = { events: limits.events - inbox.stored_events, bytes: limits.bytes - inbox.stored_bytes };
  let used = 0;
  const count = sized.findIndex(({ bytes }, at) => at >= room.events || (used += bytes) > room.bytes);
  return count < 0 ? sized : sized.slice(0, count);
}

/** One text of the statement for every number of rows. @returns the positions that were not repetitions */
async function insert(
  tx: Db,
  { target, first, received_at, sized }: { target: InboxTarget; first: number; received_at: string; sized: Sized[] },
): Promise<Set<number>> {
  if (sized.length === 0) return new Set();
  const ids = sized.map(({ event }) => event.id ?? Bun.randomUUIDv7());
  const rows = await tx.execute<{ position: string }>(sql`
    insert into ${webhookEvents}
      (account_connector_id, position, event_id, event_type, received_at, headers, body, bytes)
    select ${target.account_connector_id}::uuid, ${first}::bigint + at - 1, event_id, event_type,
      ${received_at}::timestamptz, headers, body, bytes
    from unnest(
      ${sql.param(ids)}::text[], ${sql.param(sized.map(({ event }) => event.type))}::text[],
      ${sql.param(sized.map(({ headers }) => headers))}::text[], ${sql.param(sized.map(({ event }) => event.body))}::text[],
      ${sql.param(sized.map(({ bytes }) => bytes))}::int[]
    ) with ordinality as given (event_id, event_type, headers, body, bytes, at)
    on conflict (account_connector_id, event_id) do nothing
    returning position`);
  return new Set(rows.map(({ position }) => Number(position)));
}
