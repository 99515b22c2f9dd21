import { and, desc, eq, getTableColumns, inArray, type SQL } from 'drizzle-orm';
import { type EventRow, events } from '../../../db/schema/index.ts';
import { EVENT_KINDS } from '../../events/kinds.ts';
import { eventPayload } from '../../events/variables.ts';
import type { Ctx } from '../../api/procedure.ts';
import { countRows } from '../../api/total-count.ts';
import { isId } from '../../api/wire-types.ts';
import type { EventQuery, EventSchema } from './events-schema.ts';

export const { evaluation_attempts: _, ...shownEvent } = getTableColumns(events);

export const presentEvent = (row: Omit<EventRow, 'evaluation_attempts'>): EventSchema => ({
  ...row,
  payload: eventPayload(row),
});

/** The account's events, newest first. `X-Total-Count` has the number of matches. */
export async function listEvents(ctx: Ctx, query: EventQuery): Promise<EventSchema[]> {
  const where = filterOf(ctx, query);
  const [rows, total] = await Promise.all([
    where === null
      ? []
      : ctx.db
          .select(shownEvent)
          .from(events)
          .where(where)
          .orderBy(desc(events.occurred_at), desc(events.id))
          .limit(query.limit)
          .offset(query.offset),
    where === null ? 0 : countRows(ctx.db, events, where),
  ]);
  ctx.setHeader('X-Total-Count', String(total));
  return rows.map(presentEvent);
}

/** Null when nothing can match: ids are opaque to clients, so any text is a valid filter. */
function filterOf(ctx: Ctx, query: EventQuery): SQL | undefined | null {
  const { event, category, severity, connection_id } = query;
  if (connection_id !== undefined && !isId(connection_id)) return null;
  return and(
    eq(events.account_id, ctx.principal.account_id),
    event && eq(events.event, event),
    category && inArray(events.event, kindsWith({ category })),
    severity && inArray(events.event, kindsWith({ severity })),
    connection_id === undefined ? undefined : eq(events.connection_id, connection_id),
  );
}

/** Category and severity follow from the kind, which has an index. */
const kindsWith = (wanted: Pick<EventQuery, 'category' | 'severity'>): string[] =>
  Object.entries(EVENT_KINDS)
    .filter(([, kind]) => Object.entries(wanted).every(([key, value]) => kind[key as 'category'] === value))
    .map(([name]) => name);
