import { and, asc, desc, eq, inArray, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { cases, caseTimeline, deliveries, events, triggers, users } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { moveCase } from '../../automation/cases/transitions.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { countRows } from '../../api/total-count.ts';
import { isId } from '../../api/wire-types.ts';
import type { CaseQuery, CaseSchema } from './cases-schema.ts';
import { presentEvent, shownEvent } from './events.ts';

const MAX_DELIVERIES = 100;

const acknowledger = alias(users, 'acknowledger');
const resolver = alias(users, 'resolver');

const select = (db: Db) =>
  db
    .select({
      row: cases,
      trigger_name: triggers.name,
      acknowledged_by: { id: acknowledger.id, name: acknowledger.full_name, email: acknowledger.email },
      resolved_by: { id: resolver.id, name: resolver.full_name, email: resolver.email },
    })
    .from(cases)
    .innerJoin(triggers, eq(triggers.id, cases.trigger_id))
    .leftJoin(acknowledger, eq(acknowledger.id, cases.acknowledged_by))
    .leftJoin(resolver, eq(resolver.id, cases.resolved_by));

type CaseRecord = Awaited<ReturnType<typeof select>>[number];

/** The account's cases, newest first. `X-Total-Count` has the number of matches. */
export async function listCases(ctx: Ctx, query: CaseQuery): Promise<CaseSchema[]> {
  const where = filterOf(ctx, query);
  if (where === null) {
    ctx.setHeader('X-Total-Count', '0');
    return [];
  }
  const all = select(ctx.db)
    .where(where)
    .orderBy(desc(cases.created_at), desc(cases.id))
    .offset(query.offset)
    .$dynamic();
  const [records, total] = await Promise.all([
    query.limit === undefined ? all : all.limit(query.limit),
    countRows(ctx.db, cases, where),
  ]);
  ctx.setHeader('X-Total-Count', String(total));
  return records.map((record) => present(record, { latest_events: null, timeline: null, deliveries: null }));
}

/** Null when nothing can match: ids are opaque to clients, so any text is a valid filter. */
function filterOf(ctx: Ctx, { status, severity, trigger_id }: CaseQuery): SQL | undefined | null {
  if (trigger_id !== undefined && !isId(trigger_id)) return null;
  return and(
    eq(cases.account_id, ctx.principal.account_id),
    status && eq(cases.status, status),
    severity && eq(cases.severity, severity),
    trigger_id === undefined ? undefined : eq(cases.trigger_id, trigger_id),
  );
}

/** With events, timeline and deliveries. @throws ApiError 404 */
export async function getCase(ctx: Ctx, input: { case_id: string }): Promise<CaseSchema> {
  const [record] = isId(input.case_id)
    ? await select(ctx.db).where(and(eq(cases.id, input.case_id), eq(cases.account_id, ctx.principal.account_id)))
    : [];
  if (!record) throw notFound('Case');
  return present(record, await detailsOf(ctx.db, record.row));
}

async function detailsOf(db: Db, { id, latest_event_ids }: CaseRecord['row']) {
  const [latest_events, timeline, made] = await Promise.all([
    db
      .select(shownEvent)
      .from(events)
      .where(inArray(events.id, latest_event_ids))
      .orderBy(desc(events.occurred_at), desc(events.id)),
    db
      .select({ at: caseTimeline.at, type: caseTimeline.type, actor: caseTimeline.actor, note: caseTimeline.note })
      .from(caseTimeline)
      .where(eq(caseTimeline.case_id, id))
      .orderBy(asc(caseTimeline.id)),
    db
      .select()
      .from(deliveries)
      .where(eq(deliveries.case_id, id))
      .orderBy(sql`${deliveries.status} = 'suppressed'`, desc(deliveries.id))
      .limit(MAX_DELIVERIES),
  ]);
  return {
    latest_events: latest_events.map(presentEvent),
    timeline: timeline as CaseSchema['timeline'],
    deliveries: made,
  };
}

const present = (
  { row, ...joined }: CaseRecord,
  details: Pick<CaseSchema, 'latest_events' | 'timeline' | 'deliveries'>,
): CaseSchema => ({ ...row, ...joined, ...details });

/**
 * Sets the status of a case. The current status changes nothing.
 * @throws ApiError 404; 400 `invalid_transition` with the current `status`.
 */
export async function updateCase(
  ctx: Ctx,
  { case_id, status }: { case_id: string; status: CaseSchema['status'] },
): Promise<CaseSchema> {
  const before = await getCase(ctx, { case_id });
  const moved = await moveCase(ctx.db, {
    case_id: before.id,
    status,
    actor: actorOf(ctx.principal),
    now: ctx.deps.now().toISOString(),
  });
  if ('refused' in moved) throw badRequest('invalid_transition', moved.refused, { status: moved.status });
  return getCase(ctx, { case_id });
}
