import { type SQL, sql } from 'drizzle-orm';
import { accounts } from '../../db/schema/index.ts';
import { PLANS } from '../pipeline/billing-plans.ts';

/**
 * How long an account keeps something: `days`, or less where its billing plan or the operator says so. Of a row of
 * `accounts`.
 */
export const retentionDays = (
  limit: 'network_log_retention_days' | 'history_retention_days',
  days: number,
): SQL<number> => {
  const byPlan = sql<number>`case ${accounts.plan_id} ${sql.join(
    PLANS.map((plan) => sql`when ${plan.id} then ${Math.min(days, plan.limits[limit] ?? days)}::int`),
    sql` `,
  )} else ${days}::int end`;
  return limit === 'network_log_retention_days' ? sql`least(${byPlan}, ${accounts.max_log_days})` : byPlan;
};

/** The instant before which the history of an account is deleted. Of a row of `accounts`. */
export const historyLimit = (now: Date, days: number): SQL<string> =>
  sql`${now.toISOString()}::timestamptz - make_interval(days => ${retentionDays('history_retention_days', days)})`;
