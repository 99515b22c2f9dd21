import { and, eq, lte, type SQL, sql } from 'drizzle-orm';
import {
  events,
  type TriggerGroupRow,
  triggerGroups,
  triggerMatches,
  type TriggerRow,
  triggers,
} from '../../../db/schema/index.ts';
import { askTogether, findsAny, type Question } from '../../../db/ask-together.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import { lockEvaluation } from './evaluate-batch.ts';
import { fireTrigger } from './fire-trigger.ts';
import { later } from './group-state.ts';

const BATCH_SIZE = 100;

const OVERDUE: Question = {
  name: 'overdue triggers',
  query: (db) =>
    db
      .selectDistinct({ account_id: triggers.account_id })
      .from(triggerGroups)
      .innerJoin(triggers, eq(triggers.id, triggerGroups.trigger_id))
      .where(lte(triggerGroups.due_at, sql.placeholder('overdue_at'))),
};

/** Fires the proactive triggers whose expected event did not arrive in time. Returns their number. */
export async function fireOverdue(deps: Deps): Promise<number> {
  const now = deps.now().toISOString();
  let fired = 0;
  for (const account_id of await askTogether<string>(deps.db, OVERDUE, { overdue_at: now })) {
    fired += await deps.db.transaction(async (tx) => {
      if (!(await lockEvaluation(tx, account_id))) return 0;
      return fireOfAccount(tx, deps, { account_id, now });
    });
  }
  return fired;
}

async function fireOfAccount(tx: Db, deps: Deps, at: { account_id: string; now: string }): Promise<number> {
  const due = await tx
    .select({ group: triggerGroups, trigger: triggers })
    .from(triggerGroups)
    .innerJoin(triggers, eq(triggers.id, triggerGroups.trigger_id))
    .where(
      and(
        eq(triggers.account_id, at.account_id),
        lte(triggerGroups.due_at, at.now),
        // The expected event may be among those not evaluated yet.
        sql`not exists (select from events e where e.account_id = ${at.account_id}
          and e.processing_status in ('received', 'evaluating') and e.occurred_at <= ${triggerGroups.due_at})`,
      ),
    )
    .orderBy(triggerGroups.due_at)
    .limit(BATCH_SIZE)
    .for('no key update');
  let fired = 0;
  for (const { group, trigger } of due) {
    await tx
      .update(triggerGroups)
      .set({ due_at: null, event_id: null, matched_at: [] })
      .where(and(eq(triggerGroups.trigger_id, trigger.id), eq(triggerGroups.group_key, group.group_key)));
    if (await fireDue(tx, deps, { trigger, group, now: at.now })) fired += 1;
  }
  return fired;
}

async function fireDue(
  tx: Db,
  deps: Deps,
  due: { trigger: TriggerRow; group: TriggerGroupRow; now: string },
): Promise<boolean> {
  const { trigger, group, now } = due;
  if (!trigger.enabled || trigger.deleted_at !== null || trigger.state === 'auto_disabled') return false;
  if (group.event_id === null || (group.cooldown_until !== null && now < group.cooldown_until)) return false;
  const match = and(eq(triggerMatches.event_id, group.event_id), eq(triggerMatches.trigger_id, trigger.id));
  const [taken] = await tx
    .update(triggerMatches)
    .set({ fired: true })
    .where(and(match, eq(triggerMatches.fired, false)))
    .returning();
  const [event] = await tx.select().from(events).where(eq(events.id, group.event_id));
  if (!taken || !event) return false;
  const { case_id } = await fireTrigger(tx, deps, { trigger, event, group: group.group, kind: 'fired' });
  if (case_id !== null) {
    await tx.update(triggerMatches).set({ case_id }).where(match);
    await tx
      .update(events)
      .set({ case_ids: sql`array_append(${events.case_ids}, ${case_id}::uuid)` })
      .where(eq(events.id, event.id));
  }
  if (trigger.cooldown_seconds > 0) {
    const cooldown_until = later(now, trigger.cooldown_seconds);
    await tx
      .update(triggerGroups)
      .set({ cooldown_until })
      .where(and(eq(triggerGroups.trigger_id, trigger.id), eq(triggerGroups.group_key, group.group_key)));
  }
  await tx.execute(sql`
    update triggers set fire_count = fire_count + 1, last_fired_at = ${now},
      state = ${trigger.cooldown_seconds > 0 ? 'cooldown' : 'triggered'}
    where id = ${trigger.id}`);
  return true;
}

/** The time has passed that it waited for, or a user has resolved its case. */
const isIdleAgain = (instant: SQL): SQL => sql`
    t.deleted_at is null and (
      (t.state = 'pending' and not exists (
        select from trigger_groups g where g.trigger_id = t.id and (g.due_at is not null or (
          cardinality(g.matched_at) > 0 and (t.within_seconds = 0
            or g.matched_at[cardinality(g.matched_at)]::timestamptz > ${instant}::timestamptz - make_interval(secs => t.within_seconds))))))
      or (t.state = 'cooldown' and not exists (
        select from trigger_groups g where g.trigger_id = t.id and g.cooldown_until > ${instant}::timestamptz)
        and (t.cooldown_seconds > 0 or t.last_fired_at < ${instant}::timestamptz - interval '1 minute'))
      or (t.state = 'triggered' and not exists (
        select from cases c where c.trigger_id = t.id and c.status in ('open', 'acknowledged', 'suppressed'))))`;

const ANY_IDLE_AGAIN: Question = {
  name: 'idle triggers',
  query: () => sql`select t.id from triggers t where ${isIdleAgain(sql`${sql.placeholder('states_at')}`)} limit 1`,
};

/** Updates states of triggers that change without an event: by time, or when a user resolves a case. */
export async function refreshTriggerStates({ db, now }: Pick<Deps, 'db' | 'now'>): Promise<void> {
  const states_at = now().toISOString();
  if (!(await findsAny(db, ANY_IDLE_AGAIN, { states_at }))) return;
  await db.execute(sql`update triggers t set state = 'idle' where ${isIdleAgain(sql`${states_at}`)}`);
}
