import { and, asc, desc, eq, inArray, isNull, sql } from 'drizzle-orm';
import { accounts, type ConnectionRow, connections } from '../../db/schema/index.ts';
import { askTogether, type Question } from '../../db/ask-together.ts';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import { PLANS } from '../pipeline/billing-plans.ts';
import { emitConnectionChange } from '../events/connection-events.ts';
import { type AccountPlan, creditsCeiling, isUnpaid, readAccountPlan } from './account-plan.ts';
import { creditsUsed } from './credits.ts';
import { nextRunAt } from '../pipeline/schedule.ts';

/** Why the billing plan locks a connection. */
export type LockReason = 'payment_overdue' | 'credits_exhausted' | 'plan_limit';

/** Connections changed per transaction. */
const BATCH = 100;

const UNLIMITED = PLANS.filter((plan) => plan.limits.max_connections === null && creditsCeiling(plan) === null);

const AFFECTED: Question = {
  name: 'accounts with plan locks',
  query: () => sql`
    select a.id from ${accounts} a
    where a.payment_status in ('overdue', 'ended')
      or not (${inArray(
        sql`a.plan_id`,
        UNLIMITED.map(({ id }) => id),
      )})
      or exists (select from connections c where c.account_id = a.id and c.status = 'locked' and c.deleted_at is null)`,
};

/** Locks and unlocks connections as the billing plan of each account requires. Any number of workers may run it at once. */
export async function applyAllPlanLocks({ db, now }: Pick<Deps, 'db' | 'now'>): Promise<void> {
  for (const id of await askTogether<string>(db, AFFECTED)) {
    while ((await db.transaction((tx) => applyPlanLocks(tx, id, now()))) === BATCH) continue;
  }
}

/**
 * Locks the connections that the plan of an account no longer allows, newest first, and restores the earlier state of
 * those that it allows again. Runs in the caller's transaction and locks the account in it. A connection that another
 * transaction has locked is left to the next call. Returns how many changed, at most 100.
 */
export async function applyPlanLocks(db: Db, account_id: string, now: Date): Promise<number> {
  const known = await readAccountPlan(db, account_id, { now, lock: true });
  const reason = await accountReason(db, known);
  const beyond = reason ? null : await beyondLimit(db, known);
  const wanted = (id: string): LockReason | null => reason ?? (beyond?.has(id) ? 'plan_limit' : null);
  const all = await db
    .select({ id: connections.id, status: connections.status, status_reason: connections.status_reason })
    .from(connections)
    .where(ofAccount(account_id));
  const wrong = all
    .filter(({ id, status, status_reason }) => (status === 'locked' ? status_reason : null) !== wanted(id))
    .slice(0, BATCH);
  if (wrong.length === 0) return 0;
  const ids = wrong.map(({ id }) => id);
  const rows = await db
    .select()
    .from(connections)
    .where(and(inArray(connections.id, ids), isNull(connections.deleted_at)))
    .orderBy(desc(connections.created_at), desc(connections.id))
    .for('no key update', { skipLocked: true });
  for (const row of rows) await applyLock(db, { row, reason: wanted(row.id), now });
  return rows.length;
}

const ofAccount = (account_id: string) => and(eq(connections.account_id, account_id), isNull(connections.deleted_at));

/** The reason to lock every connection of the account, or null. */
async function accountReason(db: Db, known: AccountPlan): Promise<LockReason | null> {
  if (isUnpaid(known.account)) return 'payment_overdue';
  const ceiling = creditsCeiling(known.plan);
  if (ceiling === null) return null;
  return (await creditsUsed(db, known.account.id, known.period)) >= ceiling ? 'credits_exhausted' : null;
}

/** The newest connections, beyond the number that the plan allows. */
async function beyondLimit(db: Db, { account, plan }: AccountPlan): Promise<Set<string>> {
  const { max_connections } = plan.limits;
  if (max_connections === null) return new Set();
  const rows = await db
    .select({ id: connections.id })
    .from(connections)
    .where(ofAccount(account.id))
    .orderBy(asc(connections.created_at), asc(connections.id))
    .offset(max_connections);
  return new Set(rows.map(({ id }) => id));
}

const SENTENCES: Record<LockReason, string> = {
  payment_overdue: 'was locked: payment is overdue',
  credits_exhausted: 'was locked: the credits of this billing period are used up',
  plan_limit: 'was locked: the plan allows fewer connections',
};

async function applyLock(db: Db, change: { row: ConnectionRow; reason: LockReason | null; now: Date }): Promise<void> {
  const { row, reason, now } = change;
  if (reason === null) {
    if (row.status === 'locked') await unlock(db, row, now);
    return;
  }
  if (row.status === 'locked') {
    if (row.status_reason === reason) return;
    await store(db, row, { status_reason: reason });
    return emitConnectionChange(db, {
      connection: row,
      event: 'connection_updated',
      sentence: SENTENCES[reason],
      changed_fields: ['status_reason'],
    });
  }
  const locked_from = { status: row.status, reason: row.status_reason };
  await store(db, row, { status: 'locked', status_reason: reason, locked_from });
  await emitConnectionChange(db, {
    connection: row,
    event: 'connection_locked',
    sentence: SENTENCES[reason],
    changed_fields: ['status'],
  });
}

/** The schedule continues from now: ticks missed while locked are not made up. */
async function unlock(db: Db, row: ConnectionRow, now: Date): Promise<void> {
  const { status, reason } = row.locked_from ?? { status: 'active' as const, reason: null };
  const anchor = row.next_run_at === null ? now : new Date(row.next_run_at);
  await store(db, row, {
    status,
    status_reason: reason,
    locked_from: null,
    next_run_at: status === 'active' ? nextRunAt(row.schedule, { anchor, after: now }) : null,
    ticking_since: now.toISOString(),
  });
  await emitConnectionChange(db, {
    connection: row,
    event: 'connection_unlocked',
    sentence: 'was unlocked',
    changed_fields: ['status'],
  });
}

async function store(db: Db, row: ConnectionRow, changes: Partial<ConnectionRow>): Promise<void> {
  await db
    .update(connections)
    .set({ ...changes, revision: sql`${connections.revision} + 1` })
    .where(eq(connections.id, row.id));
}
