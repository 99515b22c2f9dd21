import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import { type EventRow, events, triggerMatches } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import { reportEvents } from '../../events/report-events.ts';
import { applyMatch, type EvaluationBatch, openBatch } from './fire-matches.ts';
import { matchEvents } from './match-events.ts';
import { storeTallies } from './trigger-stats.ts';
import { triggerIndex } from '../triggers/trigger-index.ts';

const LOCK_CLASS = 7_300_005;

/**
 * Makes this transaction the only evaluator of the account, so that events are taken in order and group states have one
 * writer. False when another process evaluates the account.
 */
export async function lockEvaluation(tx: Db, account_id: string): Promise<boolean> {
  const [row] = await tx.execute<{ locked: boolean }>(
    sql`select pg_try_advisory_xact_lock(${LOCK_CLASS}, hashtext(${account_id})) as locked`,
  );
  return row?.locked ?? false;
}

/**
 * Evaluates the oldest waiting events of an account in one transaction: states, cases, deliveries and the status of the
 * events change together. Returns the number of events taken, or null when another process evaluates the account.
 */
export async function evaluateBatch(deps: Deps, account_id: string, limit: number): Promise<number | null> {
  const evaluated = await deps.db.transaction((tx) => evaluateOldest(deps, tx, { account_id, limit }));
  // After the commit, and by the process that has taken them: each event is reported once.
  if (evaluated) reportEvents(deps, evaluated);
  return evaluated && evaluated.length;
}

async function evaluateOldest(
  deps: Deps,
  tx: Db,
  { account_id, limit }: { account_id: string; limit: number },
): Promise<EventRow[] | null> {
  if (!(await lockEvaluation(tx, account_id))) return null;
  const waiting = await tx
    .select()
    .from(events)
    .where(and(eq(events.account_id, account_id), inArray(events.processing_status, ['received', 'evaluating'])))
    .orderBy(asc(events.occurred_at), asc(events.id))
    .limit(limit)
    .for('no key update', { skipLocked: true });
  if (waiting.length === 0) return [];
  const index = await triggerIndex(tx, account_id);
  const { matches, tallies } = matchEvents(waiting, index);
  const batch = await openBatch(tx, matches);
  for (const match of matches) await applyMatch(tx, deps, { batch, match });
  await batch.groups.store(tx);
  await storeMatches(tx, batch);
  await storeTallies(tx, { tallies: tallies.values(), fired: batch.fired, now: deps.now().toISOString() });
  await storeProcessed(tx, waiting, batch);
  return waiting;
}

async function storeMatches(tx: Db, { recorded }: EvaluationBatch): Promise<void> {
  if (recorded.length > 0) await tx.insert(triggerMatches).values(recorded);
}

async function storeProcessed(tx: Db, waiting: EventRow[], { recorded, resolved }: EvaluationBatch): Promise<void> {
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
