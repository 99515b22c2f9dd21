import { createHash } from 'node:crypto';
import { and, desc, eq, gt, inArray, sql } from 'drizzle-orm';
import {
  accounts,
  type CASE_ENTRIES,
  type CaseRow,
  cases,
  caseTimeline,
  type EventRow,
  SEVERITIES,
  type TriggerRow,
} from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Actor } from '../../events/emit.ts';
import { automationActor, type CaseEventKind, emitCaseEvent } from '../../events/trigger-events.ts';
import { renderTemplate } from '../render-template.ts';
import { caseSettings } from '../triggers/trigger-index.ts';
import { eventFacts } from '../../events/variables.ts';

export type CaseStatus = CaseRow['status'];

/** States in which a case takes further events. */
export const LIVE_CASE: CaseStatus[] = ['open', 'acknowledged', 'suppressed'];

/** A case and how a firing changed it. */
export interface CaseChange {
  row: CaseRow;
  change: 'opened' | 'reopened' | 'raised' | 'joined';
}

interface Firing {
  trigger: TriggerRow;
  event: EventRow;
  group: Record<string, unknown>;
  now: string;
}

const LATEST_EVENTS = 20;
const MAX_TITLE = 500;

/** Firings with the same account, trigger and group belong to one case. */
export function dedupKey({ trigger, group }: Pick<Firing, 'trigger' | 'group'>): string {
  const canonical = Object.keys(group)
    .toSorted()
    .map((name) => [name, group[name] ?? null]);
  return createHash('sha256')
    .update(`${trigger.account_id}|${trigger.id}|${JSON.stringify(canonical)}`)
    .digest('hex');
}

/** Adds a firing to the live case of its group, reopens the last resolved one, or opens a new one. */
export async function takeIntoCase(db: Db, firing: Firing): Promise<CaseChange> {
  // One firing at a time per account, so that two firings do not both find no case. Locked before any case: an UPDATE
  // that waited for another transaction keeps its row lock even when the row no longer matches, and waiting for the
  // account while holding it would deadlock.
  await db
    .select({ id: accounts.id })
    .from(accounts)
    .where(eq(accounts.id, firing.trigger.account_id))
    .for('no key update');
  for (;;) {
    // A user may reopen the resolved case at any moment. The unique index then rejects ours, and we join that one.
    const taken = (await join(db, firing)) ?? (await reopen(db, firing)) ?? (await open(db, firing));
    if (taken) return taken;
  }
}

const counted = ({ event }: Firing) => ({
  event_count: sql`${cases.event_count} + 1`,
  last_event_at: sql`greatest(${cases.last_event_at}, ${event.occurred_at}::timestamptz)`,
  latest_event_ids: sql`(array_prepend(${event.id}::uuid, ${cases.latest_event_ids}))[1:${sql.raw(String(LATEST_EVENTS))}]`,
  ...(typeof event.payload.error_message === 'string' && { last_error: event.payload.error_message }),
});

async function join(db: Db, firing: Firing): Promise<CaseChange | null> {
  const { trigger } = firing;
  const [row] = await db
    .update(cases)
    .set(counted(firing))
    .where(
      and(
        eq(cases.account_id, trigger.account_id),
        eq(cases.dedup_key, dedupKey(firing)),
        inArray(cases.status, LIVE_CASE),
      ),
    )
    .returning();
  if (!row) return null;
  if (SEVERITIES.indexOf(trigger.severity) <= SEVERITIES.indexOf(row.severity)) return { row, change: 'joined' };
  const [raised] = await db.update(cases).set({ severity: trigger.severity }).where(eq(cases.id, row.id)).returning();
  await note(db, row.id, {
    type: 'raised',
    actor: automationActor(trigger),
    note: `${row.severity} to ${trigger.severity}`,
  });
  return { row: raised!, change: 'raised' };
}

async function reopen(db: Db, firing: Firing): Promise<CaseChange | null> {
  const { trigger, event, now } = firing;
  const since = new Date(Date.parse(now) - caseSettings(trigger).reopen_window_seconds * 1000).toISOString();
  const [last] = await db
    .select({ id: cases.id })
    .from(cases)
    .where(
      and(
        eq(cases.account_id, trigger.account_id),
        eq(cases.dedup_key, dedupKey(firing)),
        eq(cases.status, 'resolved'),
        gt(cases.resolved_at, since),
      ),
    )
    .orderBy(desc(cases.resolved_at))
    .limit(1);
  if (!last) return null;
  const [row] = await db
    .update(cases)
    .set({ ...counted(firing), ...REOPENED, severity: trigger.severity })
    .where(and(eq(cases.id, last.id), eq(cases.status, 'resolved')))
    .returning();
  if (!row) return join(db, firing);
  await report(db, 'case_reopened', { row, trigger, actor: automationActor(trigger), event, note: event.summary });
  return { row, change: 'reopened' };
}

/** Columns that reopening resets. */
export const REOPENED = {
  status: 'open' as const,
  reopened_count: sql`${cases.reopened_count} + 1`,
  acknowledged_at: null,
  acknowledged_by: null,
  resolved_at: null,
  resolved_by: null,
  resolution: null,
};

async function open(db: Db, firing: Firing): Promise<CaseChange | null> {
  const { trigger, event, group, now } = firing;
  const [account] = await db
    .update(accounts)
    .set({ case_counter: sql`${accounts.case_counter} + 1`, updated_at: sql`${accounts.updated_at}` })
    .where(eq(accounts.id, trigger.account_id))
    .returning({ number: accounts.case_counter });
  const [row] = await db
    .insert(cases)
    .values({
      account_id: trigger.account_id,
      number: account!.number,
      title: titleOf(firing),
      status: 'open',
      severity: trigger.severity,
      trigger_id: trigger.id,
      dedup_key: dedupKey(firing),
      group,
      connection_id: event.connection_id,
      account_connector_id: event.account_connector_id,
      first_event_at: event.occurred_at,
      last_event_at: event.occurred_at,
      opened_at: now,
      last_error: typeof event.payload.error_message === 'string' ? event.payload.error_message : null,
      latest_event_ids: [event.id],
    })
    .onConflictDoNothing()
    .returning();
  if (!row) return null;
  await report(db, 'case_opened', { row, trigger, actor: automationActor(trigger), event, note: event.summary });
  return { row, change: 'opened' };
}

function titleOf({ trigger, event }: Firing): string {
  const named = typeof event.payload.connection_name === 'string';
  const values = { ...eventFacts(event), severity: trigger.severity, trigger_name: trigger.name };
  const template = `{{ severity }}: {{ trigger_name }}${named ? ' on {{ connection_name }}' : ''}`;
  return renderTemplate(template, values, 'text').slice(0, MAX_TITLE);
}

/** The entry of the timeline for each event. */
const ENTRIES: Record<CaseEventKind, (typeof CASE_ENTRIES)[number]> = {
  case_opened: 'opened',
  case_acknowledged: 'acknowledged',
  case_resolved: 'resolved',
  case_reopened: 'reopened',
  case_suppressed: 'suppressed',
};

export interface CaseReport {
  row: CaseRow;
  trigger: Pick<TriggerRow, 'id' | 'name'>;
  actor: Actor;
  /** The event that caused the change. Null: a user did. */
  event: EventRow | null;
  note: string | null;
}

/** Writes the timeline entry and the event of a change of state. */
export async function report(db: Db, event: CaseEventKind, change: CaseReport): Promise<void> {
  const { row, trigger, actor } = change;
  await Promise.all([
    note(db, row.id, { type: ENTRIES[event], actor, note: change.note }),
    emitCaseEvent(db, event, {
      row,
      trigger,
      actor,
      causation_depth: change.event ? change.event.causation_depth + 1 : 0,
    }),
  ]);
}

/** Writes a timeline entry without an event, for anything but a change of state. */
export async function note(
  db: Db,
  case_id: string,
  entry: { type: (typeof CASE_ENTRIES)[number]; actor: Actor | null; note: string | null },
): Promise<void> {
  await db.insert(caseTimeline).values({ case_id, ...entry, actor: entry.actor && { ...entry.actor } });
}
