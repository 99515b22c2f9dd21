import { type AccountPlan, readAccountPlan } from '../../billing/account-plan.ts';
import { creditsUsed } from '../../billing/credits.ts';
import { countOf } from '../../billing/usage-counts.ts';
import { percentOf, WARNING_PERCENT } from '../../billing/limit-notices.ts';
import { COUNTED_LIMITS } from '../../../db/schema/index.ts';
import type { CountedLimit } from '../../pipeline/billing-plans.ts';
import { billingPeriod, daysIn, utcDay } from '../../platform/utc-days.ts';
import type { Ctx } from '../../api/procedure.ts';
import { daysOf, type UsageRange } from '../../api/usage-range.ts';
import { countRuns, type DayUsage, usageByDay } from './ledger.ts';
import type { AggregatedUsageSchema, LimitUsage } from './schema.ts';
import { granularityOf, seriesOf, total } from './sums.ts';

/** The usage of the account in a date range, and its current usage of the plan limits. */
export async function aggregatedUsage(ctx: Ctx, input: UsageRange): Promise<AggregatedUsageSchema> {
  const { account_id } = ctx.principal;
  const now = ctx.deps.now();
  const known = await readAccountPlan(ctx.db, account_id, { now });
  const days = daysOf(input, { today: utcDay(now), anchor: known.account.billing_anchor });
  const [ledger, runs, counts, used] = await Promise.all([
    usageByDay(ctx.db, { account_id, days }),
    countRuns(ctx.db, { account_id, days }),
    countAll(ctx),
    creditsUsed(ctx.db, account_id, known.period),
  ]);
  const { credits_included } = known.plan;
  return {
    date_range: input.date_range,
    start_date: days.start,
    end_date: days.end,
    billing_period: known.period,
    granularity: granularityOf(days),
    totals: {
      ...total(ledger),
      credits_included,
      credits_remaining: credits_included === null ? null : Math.max(0, credits_included - used),
      overage_credits: overageOf(known, ledger),
      connections: counts.max_connections,
      sources: counts.max_sources,
      destinations: counts.max_destinations,
      users: counts.max_users,
      ...runs,
    },
    limits: limitsOf(known, { counts, used }),
    series: seriesOf(days, ledger),
    by_kind: {
      elt: total(ledger.filter((row) => row.kind === 'elt')),
      reverse_etl: total(ledger.filter((row) => row.kind === 'reverse_etl')),
    },
    projection:
      input.date_range === 'current_billing_period' ? projectionOf(known, { used, today: utcDay(now) }) : null,
    updated_at: now.toISOString(),
  };
}

async function countAll(ctx: Ctx): Promise<Record<CountedLimit, number>> {
  const counting = COUNTED_LIMITS.map(async (limit) => [limit, await countOf(ctx.db, ctx.principal.account_id, limit)]);
  return Object.fromEntries(await Promise.all(counting));
}

/** Each billing period within the days has its own included credits. */
function overageOf({ account, plan }: AccountPlan, ledger: DayUsage[]): number {
  const { credits_included } = plan;
  if (credits_included === null) return 0;
  const byPeriod = Map.groupBy(ledger, (row) => billingPeriod(account.billing_anchor, row.day).start);
  return [...byPeriod.values()].reduce(
    (sum, rows) => sum + Math.max(0, total(rows).credits_used - credits_included),
    0,
  );
}

function limitsOf({ plan }: AccountPlan, usage: { counts: Record<CountedLimit, number>; used: number }): LimitUsage[] {
  const rows: [string, number | null, number][] = [
    ...COUNTED_LIMITS.map((key): [string, number | null, number] => [key, plan.limits[key], usage.counts[key]]),
    ['credits_included', plan.credits_included, usage.used],
  ];
  return rows.map(([key, limit, used]) => {
    const percent = limit === null ? 0 : percentOf(used, limit);
    return {
      key,
      limit,
      used,
      percent,
      status: percent >= 100 ? 'reached' : percent >= WARNING_PERCENT ? 'warning' : 'ok',
    };
  });
}

/** Extrapolates the average of the days so far, with today as a whole day. */
function projectionOf({ plan, period }: AccountPlan, { used, today }: { used: number; today: string }) {
  const passed = daysIn({ start: period.start, end: today });
  const credits_at_period_end = Math.round((used / passed) * daysIn(period));
  const will_exceed = plan.credits_included !== null && credits_at_period_end > plan.credits_included;
  return { credits_at_period_end, will_exceed };
}
