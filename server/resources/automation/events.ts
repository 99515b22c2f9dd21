import { and, asc, desc, eq, getTableColumns, gte, inArray, lt, type SQL, sql } from 'drizzle-orm';
import { type EventRow, events } from '../../../db/schema/index.ts';
import { EVENT_KINDS, type EventKind } from '../../events/kinds.ts';
import { eventPayload } from '../../events/variables.ts';
import { badRequest } from '../../platform/errors.ts';
import { completeUntil } from '../../../db/horizon.ts';
import type { Ctx } from '../../api/procedure.ts';
import { countRows } from '../../api/total-count.ts';
import { isId } from '../../api/wire-types.ts';
import type { EventQuery, EventSchema } from './events-schema.ts';

export const { evaluation_attempts: _, ...shownEvent } = getTableColumns(events);

export const presentEvent = (row: Omit<EventRow, 'evaluation_attempts'>): EventSchema => ({
  ...row,
  event: row.event as EventKind,
  payload: eventPayload(row),
});

/**
 * The account's events, newest first, or from the event `after` on, oldest first. `X-Total-Count` has the number of
 * matches.
 * @throws ApiError 400 `unknown_event` for `after`.
 */
export async function listEvents(ctx: Ctx, query: EventQuery): Promise<EventSchema[]> {
  const filter = filterOf(ctx, query);
  const where =
    filter !== null && query.after !== undefined ? and(filter, await followingOf(ctx, query.after)) : filter;
  const order = query.after === undefined ? desc : asc;
  const [rows, total] = await Promise.all([
    where === null
      ? []
      : ctx.db
          .select(shownEvent)
          .from(events)
          .where(where)
          .orderBy(order(events.occurred_at), order(events.id))
          .limit(query.limit)
          .offset(query.offset),
    where === null ? 0 : countRows(ctx.db, events, where),
  ]);
  ctx.setHeader('X-Total-Count', String(total));
  return rows.map(presentEvent);
}

/** Events after one, up to the last moment before which no further event can appear. */
async function followingOf(ctx: Ctx, after: string): Promise<SQL> {
  const [last] = isId(after)
    ? await ctx.db
        .select({ id: events.id, occurred_at: events.occurred_at })
        .from(events)
        .where(and(eq(events.account_id, ctx.principal.account_id), eq(events.id, after)))
    : [];
  if (!last) throw badRequest('unknown_event', 'after is not the id of an event', { field: 'after' });
  const until = await completeUntil(ctx.db);
  return sql`(${events.occurred_at}, ${events.id}) > (${last.occurred_at}::timestamptz, ${last.id}::uuid)
    and ${events.occurred_at} < ${until}::timestamptz`;
}

/** Null when nothing can match: ids are opaque to clients, so any text is a valid filter. */
function filterOf(ctx: Ctx, query: EventQuery): SQL | undefined | null {
  const { event, category, severity, connection_id, from, to } = query;
  if (connection_id !== undefined && !isId(connection_id)) return null;
  return and(
    eq(events.account_id, ctx.principal.account_id),
    event && eq(events.event, event),
    category && inArray(events.event, kindsWith({ category })),
    severity && inArray(events.event, kindsWith({ severity })),
    connection_id === undefined ? undefined : eq(events.connection_id, connection_id),
    from === undefined ? undefined : gte(events.occurred_at, from),
    to === undefined ? undefined : lt(events.occurred_at, to),
  );
}

/** Category and severity follow from the kind, which has an index. */
const kindsWith = (wanted: Pick<EventQuery, 'category' | 'severity'>): string[] =>
  Object.entries(EVENT_KINDS)
    .filter(([, kind]) => Object.entries(wanted).every(([key, value]) => kind[key as 'category'] === value))
    .map(([name]) => name);
