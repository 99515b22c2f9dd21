import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import { cases, triggerMatches, triggers } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import { dedupKey, LIVE_CASE } from '../cases/cases.ts';
import {
  countExpected,
  countMatch,
  groupKey,
  groupOf,
  type Groups,
  loadGroups,
  remembersGroups,
  startWaiting,
} from './group-state.ts';
import type { Match } from './match-events.ts';
import type { Firings } from './trigger-stats.ts';
import { fireTrigger } from './fire-trigger.ts';

/** Further firings within a minute are recorded as matches but run no actions. */
const MAX_FIRINGS_PER_MINUTE = 60;

interface Recorded {
  event_id: string;
  trigger_id: string;
  fired: boolean;
  case_id: string | null;
}

/** State that the matches of one batch share. */
export interface EvaluationBatch {
  groups: Groups;
  /** Enabled triggers that still exist, locked against edits until the transaction ends. */
  alive: Set<string>;
  /** Deduplication keys of the live cases that this batch might resolve. */
  live_cases: Set<string>;
  /** `event trigger` pairs that an earlier evaluation recorded. */
  known: Set<string>;
  /** Firings of the last minute, by trigger. */
  recent: Map<string, number>;
  fired: Map<string, Firings>;
  recorded: Recorded[];
  /** Cases that an event resolved. */
  resolved: { event_id: string; case_id: string }[];
}

/** Reads everything that the matches of a batch depend on, each once. */
export async function openBatch(tx: Db, matches: Match[]): Promise<EvaluationBatch> {
  const batch: Omit<EvaluationBatch, 'groups'> = {
    alive: new Set(),
    live_cases: await liveCases(tx, matches),
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
  const ids = [...new Set(matches.map(({ trigger }) => trigger.id))].toSorted();
  if (ids.length === 0) return { ...batch, groups };
  const alive = await tx
    .select({ id: triggers.id })
    .from(triggers)
    .where(and(inArray(triggers.id, ids), eq(triggers.enabled, true), sql`${triggers.deleted_at} is null`))
    .orderBy(asc(triggers.id))
    .for('no key update');
  const past = await tx
    .select({
      trigger_id: triggerMatches.trigger_id,
      fired: sql<number>`count(*) filter (where ${triggerMatches.fired})::int`,
    })
    .from(triggerMatches)
    .where(
      and(inArray(triggerMatches.trigger_id, ids), sql`${triggerMatches.created_at} > now() - interval '1 minute'`),
    )
    .groupBy(triggerMatches.trigger_id);
  const known = await tx
    .select({ event_id: triggerMatches.event_id, trigger_id: triggerMatches.trigger_id })
    .from(triggerMatches)
    .where(inArray(triggerMatches.event_id, [...new Set(matches.map(({ event }) => event.id))]));
  for (const { id } of alive) batch.alive.add(id);
  for (const { trigger_id, fired } of past) batch.recent.set(trigger_id, fired);
  for (const { event_id, trigger_id } of known) batch.known.add(`${event_id} ${trigger_id}`);
  return { ...batch, groups };
}

/** Recoveries are common and problems rare: only groups with a live case cost a further statement. */
async function liveCases(tx: Db, matches: Match[]): Promise<Set<string>> {
  const recoveries = matches.filter(({ kind }) => kind === 'resolved' || kind === 'paired');
  if (recoveries.length === 0) return new Set();
  const rows = await tx
    .select({ dedup_key: cases.dedup_key })
    .from(cases)
    .where(
      and(
        inArray(cases.trigger_id, [...new Set(recoveries.map(({ trigger }) => trigger.id))]),
        inArray(cases.status, LIVE_CASE),
      ),
    );
  return new Set(rows.map((row) => row.dedup_key));
}

/** Applies one match. Called in the order of the events. */
export async function applyMatch(
  tx: Db,
  deps: Deps,
  { batch, match }: { batch: EvaluationBatch; match: Match },
): Promise<void> {
  const { trigger, event, facts, kind } = match;
  if (!batch.alive.has(trigger.id)) return;
  const group = groupOf(trigger, facts);
  if (kind === 'expected') return countExpected(trigger, batch.groups.of(trigger, group), event.occurred_at);
  if (kind !== 'matched') return resolve(tx, deps, { batch, match });
  if (batch.known.has(`${event.id} ${trigger.id}`)) return;
  const fired = fires(batch, match, group);
  const outcome = fired ? await fireTrigger(tx, deps, { trigger, event, group, kind: 'fired' }) : { case_id: null };
  batch.recorded.push({ event_id: event.id, trigger_id: trigger.id, fired, case_id: outcome.case_id });
  if (outcome.case_id !== null) batch.live_cases.add(dedupKey({ trigger, group }));
}

/** Updates the state of the trigger and its group. True when the match fires the trigger. */
function fires(batch: EvaluationBatch, { trigger, event }: Match, group: Record<string, unknown>): boolean {
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
      firings.state =
        state.cooldown_until !== null && event.occurred_at < state.cooldown_until ? 'cooldown' : 'pending';
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

async function resolve(tx: Db, deps: Deps, { batch, match }: { batch: EvaluationBatch; match: Match }): Promise<void> {
  const { trigger, event, facts } = match;
  const group = groupOf(trigger, facts);
  if (batch.live_cases.size === 0 || !batch.live_cases.delete(dedupKey({ trigger, group }))) return;
  const { case_id } = await fireTrigger(tx, deps, { trigger, event, group, kind: 'resolved' });
  if (case_id === null) return;
  batch.resolved.push({ event_id: event.id, case_id });
  batch.fired.set(trigger.id, { count: batch.fired.get(trigger.id)?.count ?? 0, state: 'idle' });
}
