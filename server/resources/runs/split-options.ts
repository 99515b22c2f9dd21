import { accountPlan } from '../access/account-plan.ts';
import { MAX_CHUNKS, MAX_RANGE_DAYS } from '../../pipeline/custom-run/plan.ts';
import type { Ctx } from '../../api/procedure.ts';
import { PLAN_TTL_MINUTES } from './custom-plan.ts';
import { type CustomRunSplitOptions, MAX_PARALLEL_RUNS, MODES, ORDERS, REPROCESS } from './custom-schema.ts';

type Unit = CustomRunSplitOptions['units'][number];

const unit = (value: Unit['value'], label: string, approx_days: number | null): Omit<Unit, 'max_chunks'> => ({
  value,
  label,
  description:
    value === 'none'
      ? 'One run for the whole window'
      : `A run for each ${value} of the window, counted from its first day`,
  approx_days,
});

const UNITS = [
  unit('none', 'No split', null),
  unit('day', 'Day', 1),
  unit('week', 'Week', 7),
  unit('month', 'Month', 30),
  unit('quarter', 'Quarter', 91),
  unit('year', 'Year', 365),
];

/** The options of a custom run in this account. */
export async function readSplitOptions(ctx: Ctx): Promise<CustomRunSplitOptions> {
  const { account, plan } = await accountPlan(ctx);
  const max_chunks = Math.min(MAX_CHUNKS, plan.limits.max_custom_run_chunks ?? MAX_CHUNKS);
  const chunksOf = (days: number | null) =>
    days === null ? 1 : Math.min(max_chunks, Math.ceil(MAX_RANGE_DAYS / days));
  return {
    units: UNITS.map((one) => ({ ...one, max_chunks: chunksOf(one.approx_days) })),
    default_unit: 'none',
    default_size: 1,
    max_range_days: MAX_RANGE_DAYS,
    max_chunks,
    max_parallel_runs: MAX_PARALLEL_RUNS,
    orders: [...ORDERS],
    reprocess_options: [...REPROCESS],
    modes: [...MODES],
    recommended: [
      { min_days: 32, unit: 'week' },
      { min_days: 181, unit: 'month' },
    ],
    plan_ttl_minutes: PLAN_TTL_MINUTES,
    timezone: account.timezone,
  };
}
