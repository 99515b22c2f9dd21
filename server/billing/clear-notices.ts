import { and, eq } from 'drizzle-orm';
import { COUNTED_LIMITS, planLimitNotices } from '../../db/schema/index.ts';
import { findsAny, type Question } from '../../db/ask-together.ts';
import type { Db } from '../../db/types.ts';
import type { Deps } from '../deps.ts';
import { emitLimitCleared } from '../events/billing-events.ts';
import type { CountedLimit } from '../pipeline/billing-plans.ts';
import { type AccountPlan, readAccountPlan } from './account-plan.ts';
import { creditsUsed } from './credits.ts';
import { countOf } from './usage-counts.ts';
import { percentOf, WARNING_PERCENT } from './limit-notices.ts';

const ANY_NOTICE: Question = {
  name: 'plan notices',
  query: (db) => db.select({ id: planLimitNotices.account_id }).from(planLimitNotices).limit(1),
};

/** Clears the notices of limits that are no longer near. Any number of workers may run it at once. */
export async function clearPlanNotices({ db, now }: Pick<Deps, 'db' | 'now'>): Promise<void> {
  if (!(await findsAny(db, ANY_NOTICE))) return;
  const notices = await db
    .selectDistinct({ account_id: planLimitNotices.account_id, limit: planLimitNotices.limit })
    .from(planLimitNotices);
  for (const [account_id, limits] of Map.groupBy(notices, (notice) => notice.account_id)) {
    const above = await stillNear(db, account_id, { limits: limits.map(({ limit }) => limit), now: now() });
    if (above.length === limits.length) continue;
    await db.transaction((tx) => clearAccountNotices(tx, account_id, now()));
  }
}

/**
 * Emits `plan_limit_cleared` for each notified limit whose usage is below 80 % again, and deletes the notice, so that
 * the next time the limit is reached counts as new. In the caller's transaction; locks the account.
 */
export async function clearAccountNotices(tx: Db, account_id: string, now: Date): Promise<void> {
  const known = await readAccountPlan(tx, account_id, { now, lock: true });
  const notices = await tx
    .selectDistinct({ limit: planLimitNotices.limit })
    .from(planLimitNotices)
    .where(eq(planLimitNotices.account_id, account_id));
  for (const { limit } of notices) {
    const usage = await usageOf(tx, known, limit);
    if (usage.percent >= WARNING_PERCENT) continue;
    const ours = and(eq(planLimitNotices.account_id, account_id), eq(planLimitNotices.limit, limit));
    await tx.delete(planLimitNotices).where(ours);
    const { account, plan } = known;
    await emitLimitCleared(tx, { account, plan, limit, ...usage });
  }
}

async function stillNear(db: Db, account_id: string, { limits, now }: { limits: string[]; now: Date }) {
  const known = await readAccountPlan(db, account_id, { now });
  const near: string[] = [];
  for (const limit of limits) {
    if ((await usageOf(db, known, limit)).percent >= WARNING_PERCENT) near.push(limit);
  }
  return near;
}

interface LimitUsage {
  used: number;
  /** Null: unlimited. */
  limit_value: number | null;
  percent: number;
}

async function usageOf(db: Db, { account, plan, period }: AccountPlan, limit: string): Promise<LimitUsage> {
  const counted = COUNTED_LIMITS.find((one): one is CountedLimit => one === limit);
  const limit_value = counted ? plan.limits[counted] : plan.credits_included;
  const used = counted ? await countOf(db, account.id, counted) : await creditsUsed(db, account.id, period);
  return { used, limit_value, percent: limit_value === null ? 0 : percentOf(used, limit_value) };
}
