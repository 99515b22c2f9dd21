import { z } from 'zod';
import { PLAN_FEATURES, PLANS } from '../../pipeline/billing-plans.ts';
import { count, day, instant, PageQuery, whole } from '../../api/wire-types.ts';
import { AggregateUsageDateRange } from '../../api/usage-range.ts';

const date = () => z.string().meta({ format: 'date' });
const limit = () => count().nullable().meta({ description: 'Null: unlimited.' });

export const PlanSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    slug: z.string(),
    description: z.string(),
    is_current: z.boolean(),
    price_monthly_cents: count().nullable().meta({ description: 'Null: by agreement.' }),
    currency: z.string(),
    credits_included: count().nullable().meta({ description: 'Per billing period; null: rows cost no credits.' }),
    overage_allowed: z.boolean(),
    overage_price_per_million_cents: count().nullable(),
    limits: z.object({
      max_connections: limit(),
      max_sources: limit(),
      max_destinations: limit(),
      max_users: limit(),
      max_triggers: limit(),
      max_custom_run_chunks: limit(),
      min_schedule_interval_minutes: limit(),
      network_log_retention_days: limit(),
      history_retention_days: limit().meta({ description: 'Of events, runs and deliveries.' }),
    }),
    features: z.array(z.enum(PLAN_FEATURES)),
    credit_rates: z.object({ elt: whole(), reverse_etl: whole() }).meta({ description: 'Credits per loaded row.' }),
    available_from: date().nullable(),
    deprecated_at: date().nullable(),
  })
  .meta({ id: 'PlanSchema' });
export type PlanSchema = z.infer<typeof PlanSchema>;

const usage = {
  rows_total: count().meta({ description: 'rows_free + rows_paid.' }),
  rows_free: count().meta({ description: 'Loaded within the free period of their source.' }),
  rows_paid: count(),
  credits_used: count().meta({ description: 'Cost of rows_paid.' }),
  credits_free: count().meta({ description: 'Waived cost of rows_free.' }),
  bytes_loaded: count(),
};
export const Usage = z.object(usage).meta({ id: 'Usage' });
export type Usage = z.infer<typeof Usage>;

const UsagePoint = z
  .object({ date: date(), rows_free: count(), rows_paid: count(), credits_used: count() })
  .meta({ id: 'UsagePoint', description: 'A day, or a month with the date of its first day.' });
export type UsagePoint = z.infer<typeof UsagePoint>;

const LimitUsage = z
  .object({
    key: z.string().meta({ examples: ['max_connections', 'credits_included'] }),
    limit: limit(),
    used: count(),
    percent: whole().meta({ description: 'Whole percent, rounded down; 0 without a limit.' }),
    status: z.enum(['ok', 'warning', 'reached']).meta({ description: 'warning from 80 %, reached from 100 %.' }),
  })
  .meta({ id: 'LimitUsage' });
export type LimitUsage = z.infer<typeof LimitUsage>;

export const AggregatedUsageSchema = z
  .object({
    date_range: AggregateUsageDateRange,
    start_date: date(),
    end_date: date().meta({ description: 'Inclusive, UTC.' }),
    billing_period: z.object({ start: date(), end: date() }).meta({ description: 'The current billing period.' }),
    granularity: z.enum(['day', 'month']).meta({ description: 'Of `series`: month for more than 92 days.' }),
    totals: z.object({
      ...usage,
      credits_included: count().nullable().meta({ description: 'Per billing period; null: unlimited.' }),
      credits_remaining: count().nullable().meta({ description: 'In the current billing period; null: unlimited.' }),
      overage_credits: count().meta({
        description: 'Used in the date range beyond the included credits of its billing periods.',
      }),
      connections: count(),
      sources: count(),
      destinations: count(),
      users: count(),
      runs: count(),
      succeeded_runs: count(),
      failed_runs: count(),
    }),
    limits: z.array(LimitUsage),
    series: z.array(UsagePoint).meta({ description: 'Every day or month of the date range, in order.' }),
    by_kind: z.object({ elt: Usage, reverse_etl: Usage }),
    projection: z
      .object({ credits_at_period_end: count(), will_exceed: z.boolean() })
      .nullable()
      .meta({ description: 'Only for the current billing period.' }),
    updated_at: instant(),
  })
  .meta({ id: 'AggregatedUsageSchema' });
export type AggregatedUsageSchema = z.infer<typeof AggregatedUsageSchema>;

export const UsageDays = PageQuery.extend({
  start_date: day().meta({ description: 'First UTC day.' }),
  end_date: day().meta({ description: 'Last UTC day, inclusive; 400 days at most.' }),
});
export type UsageDays = z.infer<typeof UsageDays>;

export const ConnectionUsageSchema = z
  .object({
    connection_id: z.string().meta({ format: 'uuid' }),
    connection_name: z.string(),
    connection_deleted: z.boolean(),
    kind: z.enum(['elt', 'reverse_etl']),
    source_connector_name: z.string(),
    destination_connector_name: z.string(),
    ...usage,
    runs: count(),
    percent_of_total: z
      .number()
      .meta({ description: 'Share of all rows of the account in the date range, two decimals.' }),
    previous_period_change_percent: z.number().nullable().meta({
      description: 'Change of rows against the same number of days before, one decimal; null without rows before.',
    }),
    series: z
      .array(UsagePoint)
      .meta({ description: 'Every day of the date range, in order; every month for more than 92 days.' }),
    streams: z
      .array(z.object({ stream_name: z.string(), rows: count(), credits: count() }))
      .meta({ description: 'Most rows first.' }),
  })
  .meta({ id: 'ConnectionUsageSchema' });
export type ConnectionUsageSchema = z.infer<typeof ConnectionUsageSchema>;

export const ChangePlan = z
  .strictObject({
    plan_id: z.enum(PLANS.map((plan) => plan.id)),
    payment_status: z.enum(['active', 'trial', 'grace', 'ended', 'overdue']).optional(),
    billing_anchor: day().optional().meta({ description: 'Billing periods begin on this day of the month.' }),
  })
  .meta({ id: 'ChangePlan', examples: [{ plan_id: 'pro' }] });
export type ChangePlan = z.infer<typeof ChangePlan>;
