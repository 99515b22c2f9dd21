import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import { cases, events, triggerMatches, triggers } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import { countMatch, type Groups, groupKey, groupOf, loadGroups, noteExpected, remembersGroups, startWaiting } from './evaluate-groups.ts';
import { type Match, matchEvents } from './evaluate-match.ts';
import { type Firings, storeTallies } from './evaluate-tally.ts';
import { fireTrigger } from './firing.ts';
import { triggerIndex } from './triggers.ts';
import type { EventRow } from './variables.ts';

/** More firings than this within a minute are taken for a storm: they are recorded as matches and set nothing off. */
const MAX_FIRINGS_PER_MINUTE = 60;
const LOCK_CLASS = 7_300_005;

/**
 * Makes this transaction the only evaluator of the account, so that its events are taken in order and its groups have
 * one writer. False when there is another one.
 */
export async function lockEvaluation(tx: Db, account_id: string): Promise<boolean> {
  const [row] = await tx.execute<{ locked: boolean }>(
    sql`select pg_try_advisory_xact_lock(${LOCK_CLASS}, hashtext(${account_id})) as locked`,
  );
  return row?.locked ?? false;
}

/**
 * Evaluates the oldest waiting events of an account, all in one transaction: states, cases, deliveries and the events'
 * own status change together. Answers with how many it took; null when somebody else is at it.
 */
export function evaluateBatch(deps: Deps, account_id: string, limit: number): Promise<number | null> {
  return deps.db.transaction(async (tx) => {
    if (!(await lockEvaluation(tx, account_id))) return null;
    const waiting = await tx
      .select()
      .from(events)
      .where(and(eq(events.account_id, account_id), inArray(events.processing_status, ['received', 'evaluating'])))
      .orderBy(asc(events.occurred_at), asc(events.id))
      .limit(limit)
      .for('update', { skipLocked: true });
    if (waiting.length === 0) return 0;
    const index = await triggerIndex(tx, account_id);
    const { matches, tallies } = matchEvents(waiting, index);
    const batch = await openBatch(tx, matches);
    for (const match of matches) await apply(tx, deps, { batch, match });
    await batch.groups.store(tx);
    await storeMatches(tx, batch);
    await storeTallies(tx, { tallies: tallies.values(), fired: batch.fired, now: deps.now().toISOString() });
    await storeProcessed(tx, waiting, batch);
    return waiting.length;
  });
}

interface Recorded {
  event_id: string;
  trigger_id: string;
  fired: boolean;
  case_id: string | null;
}

/** What all matches of one batch share. */
interface Batch {
  groups: Groups;
  /** Triggers that are still there, locked against edits until the end. */
  alive: Set<string>;
  /** Triggers that have a case to resolve. */
  with_case: Set<string>;
  /** `event trigger` pairs that an earlier evaluation recorded. */
  known: Set<string>;
  /** Firings of the last minute. */
  recent: Map<string, number>;
  fired: Map<string, Firings>;
  recorded: Recorded[];
  /** Cases that an event resolved. */
  resolved: { event_id: string; case_id: string }[];
}

async function openBatch(tx: Db, matches: Match[]): Promise<Batch> {
  const batch: Omit<Batch, 'groups'> = {
    alive: new Set(),
    with_case: new Set(),
    known: new Set(),
    recent: new Map(),
    fired: new Map(),
    recorded: [],
    resolved: [],
  };
  const keys = matches
    .filter(({ trigger }) => remembersGroups(trigger))
    .map(({ trigger, facts }) => ({ trigger_id: trigger.id, group_key: groupKey(groupOf(trigger, facts)) }));
  const groups = await loadGroups(tx, keys);
  const ids = [...new Set(matches.map(({ trigger }) => trigger.id))].sort();
  if (ids.length === 0) return { ...batch, groups };
  const alive = await tx
    .select({ id: triggers.id })
    .from(triggers)
    .where(and(inArray(triggers.id, ids), eq(triggers.enabled, true), sql`${triggers.deleted_at} is null`))
    .orderBy(asc(triggers.id))
    .for('no key update');
  const live = await tx
    .selectDistinct({ id: cases.trigger_id })
    .from(cases)
    .where(and(inArray(cases.trigger_id, ids), inArray(cases.status, ['open', 'acknowledged', 'suppressed'])));
  const past = await tx
    .select({
      trigger_id: triggerMatches.trigger_id,
      fired: sql<number>`count(*) filter (where ${triggerMatches.fired})::int`,
    })
    .from(triggerMatches)
    .where(and(inArray(triggerMatches.trigger_id, ids), sql`${triggerMatches.created_at} > now() - interval '1 minute'`))
    .groupBy(triggerMatches.trigger_id);
  const known = await tx
    .select({ event_id: triggerMatches.event_id, trigger_id: triggerMatches.trigger_id })
    .from(triggerMatches)
    .where(inArray(triggerMatches.event_id, [...new Set(matches.map(({ event }) => event.id))]));
  for (const { id } of alive) batch.alive.add(id);
  for (const { id } of live) batch.with_case.add(id);
  for (const { trigger_id, fired } of past) batch.recent.set(trigger_id, fired);
  for (const { event_id, trigger_id } of known) batch.known.add(`${event_id} ${trigger_id}`);
  return { ...batch, groups };
}

async function apply(tx: Db, deps: Deps, { batch, match }: { batch: Batch; match: Match }): Promise<void> {
  const { trigger, event, facts, kind } = match;
  if (!batch.alive.has(trigger.id)) return;
  const group = groupOf(trigger, facts);
  if (kind === 'expected') return noteExpected(trigger, batch.groups.of(trigger, group), event.occurred_at);
  if (kind !== 'matched') return resolve(tx, deps, { batch, match });
  if (batch.known.has(`${event.id} ${trigger.id}`)) return;
  const fired = decide(batch, match, group);
  const outcome = fired ? await fireTrigger(tx, deps, { trigger, event, group, kind: 'fired' }) : { case_id: null };
  batch.recorded.push({ event_id: event.id, trigger_id: trigger.id, fired, case_id: outcome.case_id });
  if (outcome.case_id !== null) batch.with_case.add(trigger.id);
}

function decide(batch: Batch, { trigger, event }: Match, group: Record<string, unknown>): boolean {
  const firings = batch.fired.get(trigger.id) ?? { count: 0, state: null };
  batch.fired.set(trigger.id, firings);
  if (trigger.posture === 'proactive') {
    startWaiting(trigger, batch.groups.of(trigger, group), event);
    firings.state = 'pending';
    return false;
  }
  if (remembersGroups(trigger)) {
    const state = batch.groups.of(trigger, group);
    if (!countMatch(trigger, state, event.occurred_at)) {
      firings.state = state.cooldown_until !== null && event.occurred_at < state.cooldown_until ? 'cooldown' : 'pending';
      return false;
    }
  }
  const recent = (batch.recent.get(trigger.id) ?? 0) + 1;
  if (recent > MAX_FIRINGS_PER_MINUTE) {
    firings.state = 'cooldown';
    return false;
  }
  batch.recent.set(trigger.id, recent);
  firings.count += 1;
  firings.state = trigger.cooldown_seconds > 0 ? 'cooldown' : 'triggered';
  return true;
}

async function resolve(tx: Db, deps: Deps, { batch, match }: { batch: Batch; match: Match }): Promise<void> {
  const { trigger, event, facts } = match;
  if (!batch.with_case.has(trigger.id)) return;
  const group = groupOf(trigger, facts);
  const { case_id } = await fireTrigger(tx, deps, { trigger, event, group, kind: 'resolved' });
  if (case_id === null) return;
  batch.resolved.push({ event_id: event.id, case_id });
  batch.fired.set(trigger.id, { count: batch.fired.get(trigger.id)?.count ?? 0, state: 'idle' });
}

async function storeMatches(tx: Db, { recorded }: Batch): Promise<void> {
  if (recorded.length > 0) await tx.insert(triggerMatches).values(recorded);
}

async function storeProcessed(tx: Db, waiting: EventRow[], { recorded, resolved }: Batch): Promise<void> {
  const rows = new Map(waiting.map(({ id }) => [id, { id, matched: [] as string[], cases: [] as string[] }]));
  for (const { event_id, trigger_id, case_id } of recorded) {
    rows.get(event_id)?.matched.push(trigger_id);
    if (case_id !== null) rows.get(event_id)?.cases.push(case_id);
  }
  for (const { event_id, case_id } of resolved) rows.get(event_id)?.cases.push(case_id);
  await tx.execute(sql`
    update events e set
      processing_status = 'processed', evaluation_attempts = e.evaluation_attempts + 1,
      matched_trigger_ids = v.matched, case_ids = v.cases
    from jsonb_to_recordset(${JSON.stringify([...rows.values()])}::jsonb) as v(id uuid, matched uuid[], cases uuid[])
    where e.id = v.id`);
}
