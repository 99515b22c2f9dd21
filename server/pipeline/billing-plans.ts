import type { COUNTED_LIMITS, PLAN_IDS } from '../../db/schema/closed-sets.ts';

/** Features that a billing plan includes or not. */
export const PLAN_FEATURES = ['reverse_etl', 'custom_runs', 'ssh_tunnel', 'metadata_export', 'custom_roles'] as const;
export type PlanFeature = (typeof PLAN_FEATURES)[number];

export type CountedLimit = (typeof COUNTED_LIMITS)[number];

export type PlanLimits = Record<
  | CountedLimit
  | 'max_custom_run_chunks'
  | 'min_schedule_interval_minutes'
  | 'network_log_retention_days'
  | 'history_retention_days',
  /** Null: unlimited. */
  number | null
>;

export interface Plan {
  id: (typeof PLAN_IDS)[number];
  name: string;
  description: string;
  /** Null: by agreement. */
  price_monthly_cents: number | null;
  /** Per billing period; null: rows cost no credits. */
  credits_included: number | null;
  /** Whether runs continue when the credits are used up. */
  overage_allowed: boolean;
  overage_price_per_million_cents: number | null;
  limits: PlanLimits;
  features: readonly PlanFeature[];
}

const UNLIMITED: PlanLimits = {
  max_connections: null,
  max_sources: null,
  max_destinations: null,
  max_users: null,
  max_triggers: null,
  max_custom_run_chunks: null,
  min_schedule_interval_minutes: null,
  network_log_retention_days: null,
  history_retention_days: null,
};

/**
 * Limits in the order connections, sources, destinations, users, triggers, chunks, minutes, days of network logs, days
 * of history.
 */
function limits(...values: [number, number, number, number, number, number, number, number, number]): PlanLimits {
  return Object.fromEntries(Object.keys(UNLIMITED).map((key, index) => [key, values[index]])) as PlanLimits;
}

const MILLION = 1_000_000;

/** Every plan: the default of new accounts, then the others in ascending order. */
export const PLANS: readonly Plan[] = [
  {
    id: 'self_hosted',
    name: 'Self-hosted',
    description: 'Your own installation, without limits or credits',
    price_monthly_cents: 0,
    credits_included: null,
    overage_allowed: true,
    overage_price_per_million_cents: null,
    limits: UNLIMITED,
    features: PLAN_FEATURES,
  },
  {
    id: 'free',
    name: 'Free',
    description: 'For a first try',
    price_monthly_cents: 0,
    credits_included: MILLION,
    overage_allowed: false,
    overage_price_per_million_cents: null,
    limits: limits(3, 2, 2, 2, 3, 31, 60, 7, 30),
    features: ['custom_runs'],
  },
  {
    id: 'starter',
    name: 'Starter',
    description: 'For a first team',
    price_monthly_cents: 9_900,
    credits_included: 10 * MILLION,
    overage_allowed: false,
    overage_price_per_million_cents: null,
    limits: limits(20, 10, 10, 5, 20, 92, 15, 14, 90),
    features: ['custom_runs', 'ssh_tunnel', 'reverse_etl'],
  },
  {
    id: 'pro',
    name: 'Pro',
    description: 'For companies that run on their data',
    price_monthly_cents: 49_900,
    credits_included: 100 * MILLION,
    overage_allowed: true,
    overage_price_per_million_cents: 500,
    limits: limits(200, 50, 50, 25, 200, 366, 5, 14, 400),
    features: PLAN_FEATURES,
  },
  {
    id: 'enterprise',
    name: 'Enterprise',
    description: 'Without limits. Price by agreement',
    price_monthly_cents: null,
    credits_included: 1_000 * MILLION,
    overage_allowed: true,
    overage_price_per_million_cents: 300,
    limits: UNLIMITED,
    features: PLAN_FEATURES,
  },
];

/** Credits per loaded row, by the kind of the connection. */
export const CREDIT_RATES = { elt: 1, reverse_etl: 4 } as const;

/** @throws Error if this version of the service does not have the plan. */
export function planOf(plan_id: string): Plan {
  const plan = PLANS.find((one) => one.id === plan_id);
  if (!plan) throw new Error(`plan "${plan_id}" does not exist`);
  return plan;
}
