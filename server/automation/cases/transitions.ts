import { and, eq, inArray } from 'drizzle-orm';
import { type CaseRow, cases, type EventRow, type TriggerRow, triggers } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { isUniqueViolation } from '../../api/duplicate-name.ts';
import { automationActor, type CaseEventKind } from '../../events/trigger-events.ts';
import { type CaseStatus, dedupKey, LIVE_CASE, REOPENED, report } from './cases.ts';
import type { Actor } from '../../events/emit.ts';

/** For each state, the states from which a user may move a case there. */
const ALLOWED_FROM: Record<CaseStatus, readonly CaseStatus[]> = {
  acknowledged: ['open'],
  suppressed: ['open', 'acknowledged'],
  open: ['acknowledged', 'suppressed', 'resolved'],
  resolved: ['open', 'acknowledged', 'suppressed'],
};

const EVENTS: Record<CaseStatus, CaseEventKind> = {
  acknowledged: 'case_acknowledged',
  suppressed: 'case_suppressed',
  open: 'case_reopened',
  resolved: 'case_resolved',
};

/** Why a change of state was rejected. */
export interface CaseRefusal {
  refused: string;
  /** The state that the case remains in. */
  status: CaseStatus;
}

/**
 * Moves a case to a state on behalf of a user. Moving it to its current state changes nothing. The caller has checked
 * that the case belongs to the account.
 */
export async function moveCase(
  db: Db,
  move: { case_id: string; status: CaseStatus; actor: Actor; now: string },
): Promise<CaseRow | CaseRefusal> {
  const [before] = await db.select().from(cases).where(eq(cases.id, move.case_id)).for('no key update');
  if (!before) throw new Error(`case ${move.case_id} is gone`);
  if (before.status === move.status) return before;
  if (!ALLOWED_FROM[move.status].includes(before.status)) {
    return { refused: `A case that is ${before.status} cannot become ${move.status}`, status: before.status };
  }
  const row = await store(db, before, move);
  if (!row) return { refused: 'A newer case of the same group is open', status: before.status };
  const [trigger] = await db.select().from(triggers).where(eq(triggers.id, before.trigger_id));
  await report(db, EVENTS[move.status], { row, trigger: trigger!, actor: move.actor, event: null, note: null });
  return row;
}

/** Null when another live case has the same key. The unique index decides, so concurrent changes count. */
async function store(db: Db, before: CaseRow, move: Parameters<typeof columnsOf>[1]): Promise<CaseRow | null> {
  try {
    const update = (tx: Db) => tx.update(cases).set(columnsOf(before, move)).where(eq(cases.id, before.id)).returning();
    const [row] = await db.transaction(update);
    return row ?? null;
  } catch (error) {
    if (before.status === 'resolved' && isUniqueViolation(error)) return null;
    throw error;
  }
}

function columnsOf(before: CaseRow, { status, actor, now }: { status: CaseStatus; actor: Actor; now: string }) {
  if (status === 'acknowledged') return { status, acknowledged_at: now, acknowledged_by: actor.id };
  if (status === 'resolved') return { status, resolved_at: now, resolved_by: actor.id, resolution: 'manual' as const };
  if (status === 'suppressed') return { status };
  return before.status === 'resolved' ? REOPENED : { status, acknowledged_at: null, acknowledged_by: null };
}

/** Resolves the live case of a group because its problem has ended. Null: there is none. */
export async function resolveByEvent(
  db: Db,
  recovery: { trigger: TriggerRow; event: EventRow; group: Record<string, unknown>; now: string },
): Promise<{ row: CaseRow; before: CaseStatus } | null> {
  const { trigger, event, now } = recovery;
  const [live] = await db
    .select({ id: cases.id, status: cases.status })
    .from(cases)
    .where(
      and(
        eq(cases.account_id, trigger.account_id),
        eq(cases.dedup_key, dedupKey(recovery)),
        inArray(cases.status, LIVE_CASE),
      ),
    )
    .for('no key update');
  if (!live) return null;
  const [row] = await db
    .update(cases)
    .set({ status: 'resolved', resolved_at: now, resolved_by: null, resolution: 'auto' })
    .where(eq(cases.id, live.id))
    .returning();
  await report(db, 'case_resolved', {
    row: row!,
    trigger,
    actor: automationActor(trigger),
    event,
    note: event.summary,
  });
  return { row: row!, before: live.status };
}
