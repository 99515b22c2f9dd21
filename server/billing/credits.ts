import { inArray, sql } from 'drizzle-orm';
import type { AccountRow, ConnectionRow } from '../../db/schema/index.ts';
import type { Db } from '../../db/types.ts';
import { CREDIT_RATES, type Plan } from '../pipeline/billing-plans.ts';
import { LIVE_RUN } from '../pipeline/run-states.ts';
import type { DaySpan } from '../platform/utc-days.ts';
import { type AccountPlan, creditsCeiling, isUnpaid, readAccountPlans } from './account-plan.ts';
import { daysOfAccount, usageOfDays } from './closed-days.ts';

/** Credits that an account used on these days. */
export async function creditsUsed(db: Db, account_id: string, days: DaySpan): Promise<number> {
  const [sum] = await db.execute<{ used: number }>(sql`
    select coalesce(sum(credits_used), 0)::float8 as used from ${usageOfDays(daysOfAccount(account_id, days))} used`);
  return sum?.used ?? 0;
}

/** Credits left in the current billing period; null if the plan never runs out. */
export async function creditsRemaining(db: Db, { account, plan, period }: AccountPlan): Promise<number | null> {
  if (plan.credits_included === null) return null;
  return Math.max(0, plan.credits_included - (await creditsUsed(db, account.id, period)));
}

/** Why the billing plan or the operator does not let the account move data. */
export type MovementRefusal =
  | { code: 'account_suspended'; plan: Plan }
  | AccountLimitRefusal
  | { code: 'payment_required'; payment_status: string; plan: Plan }
  /** `current_value` is the sum of the credits used and `held`, those that live runs have reserved. */
  | { code: 'credits_exhausted'; limit_value: number; current_value: number; held: number; plan: Plan };

/** A limit that the operator set. `is_momentary`: live runs count towards it, so it is free again when one ends. */
interface AccountLimitRefusal {
  code: 'account_limit_reached';
  limit: 'max_rows_per_period' | 'max_live_runs';
  limit_value: number;
  current_value: number;
  plan: Plan;
}

/** Whether a start may succeed once a live run has ended. */
export const isMomentary = (refusal: MovementRefusal): boolean =>
  (refusal.code === 'credits_exhausted' && refusal.held > 0) ||
  (refusal.code === 'account_limit_reached' && refusal.limit === 'max_live_runs');

/**
 * The account plan that decides whether a run may start. Where credits or the operator's limits can run out, the account
 * is locked and read again, so that each start sees what the starts before it have reserved.
 */
export async function holdCredits(db: Db, seen: AccountPlan, now: Date): Promise<AccountPlan> {
  return (await holdAllCredits(db, [seen], now)).get(seen.account.id) ?? seen;
}

/** The same for several accounts, by id. */
export async function holdAllCredits(
  db: Db,
  seen: readonly AccountPlan[],
  now: Date,
): Promise<Map<string, AccountPlan>> {
  const limited = seen.filter(canRunOut).map(({ account }) => account.id);
  const held = await readAccountPlans(db, limited, { now, lock: true });
  return new Map(seen.map((one) => [one.account.id, held.get(one.account.id) ?? one]));
}

const canRunOut = ({ account, plan }: AccountPlan) =>
  !isUnpaid(account) && (creditsCeiling(plan) !== null || isLimited(account));

const isLimited = ({ max_rows_per_period, max_live_runs }: AccountRow) =>
  max_rows_per_period !== null || max_live_runs !== null;

/** Why no run of the account may start now; null if one may. `held` comes from `holdCredits`. */
export async function movementRefusal(db: Db, held: AccountPlan): Promise<MovementRefusal | null> {
  return refusalOf(held, (await readTaken(db, [held])).get(held.account.id));
}

/** What an account has taken of its limits. */
interface Taken {
  /** Credits used in the billing period. */
  used: number;
  /** What live runs have reserved beyond what they have used. */
  reserved: number;
  /** Rows loaded in the billing period. */
  rows: number;
  /** Live runs, but for chunks that wait for their turn. */
  moving: number;
}

/** Of the accounts that can run out of something, by id. */
async function readTaken(db: Db, held: readonly AccountPlan[]): Promise<Map<string, Taken>> {
  const spans = held.filter(canRunOut).map(({ account, period }) => ({ id: account.id, ...period }));
  if (spans.length === 0) return new Map();
  const found = await db.execute<Taken & { id: string } & Record<string, unknown>>(sql`
    select a.id, spent.used, spent.rows, live.reserved, live.moving
    from jsonb_to_recordset(${JSON.stringify(spans)}::text::jsonb) as a (id uuid, "start" date, "end" date),
    lateral (
      select coalesce(sum(credits_used), 0)::float8 as used, coalesce(sum(rows_free + rows_paid), 0)::float8 as rows
      from ${usageOfDays({ account_id: sql`a.id`, start: sql`a."start"`, end: sql`a."end"` })} used) spent,
    lateral (
      select coalesce(sum(greatest(0, r.credits_reserved - r.credits_used)), 0)::float8 as reserved,
        count(*) filter (where r.custom_run_plan_id is null or exists (
          select from stream_runs s where s.connection_run_id = r.id and s.dispatched_at is not null))::int as moving
      from connection_runs r where r.account_id = a.id and ${inArray(sql`r.status`, LIVE_RUN)}) live`);
  return new Map(found.map((one) => [one.id, one]));
}

function refusalOf({ account, plan }: AccountPlan, taken: Taken | undefined): MovementRefusal | null {
  if (account.suspended_at !== null) return { code: 'account_suspended', plan };
  if (isUnpaid(account)) return { code: 'payment_required', payment_status: account.payment_status, plan };
  if (!taken) return null;
  const limited = limitRefusal(account, plan, taken);
  if (limited) return limited;
  const limit_value = creditsCeiling(plan);
  const current_value = taken.used + taken.reserved;
  if (limit_value === null || current_value < limit_value) return null;
  return { code: 'credits_exhausted', limit_value, current_value, held: taken.reserved, plan };
}

function limitRefusal(account: AccountRow, plan: Plan, { rows, moving }: Taken): AccountLimitRefusal | null {
  const counts = { max_rows_per_period: rows, max_live_runs: moving };
  for (const limit of ['max_rows_per_period', 'max_live_runs'] as const) {
    const limit_value = account[limit];
    const current_value = counts[limit];
    if (limit_value !== null && current_value >= limit_value) {
      return { code: 'account_limit_reached', limit, limit_value, current_value, plan };
    }
  }
  return null;
}

/** Rows that an account loaded on these days. */
export async function rowsLoaded(db: Db, account_id: string, days: DaySpan): Promise<number> {
  const [sum] = await db.execute<{ rows: number }>(sql`
    select coalesce(sum(rows_free + rows_paid), 0)::float8 as rows
    from ${usageOfDays(daysOfAccount(account_id, days))} used`);
  return sum?.rows ?? 0;
}

/** Credits for a run to hold until it ends, or why the run may not start. */
export type Reservation = { refusal: MovementRefusal } | { refusal: null; credits: number };

type Payer = Pick<ConnectionRow, 'id' | 'account_id' | 'kind'>;

/** What accounts have left, counted down with each run that starts in the same transaction. */
export interface CreditsLeft {
  /** Why no further run of the connection's account may start; null if one may. */
  refusal(connection: Payer): MovementRefusal | null;
  /**
   * Reserves the average cost of the connection's last runs, or all remaining credits if there were none. Reserves nothing
   * where the plan cannot run out or the source is free.
   */
  reserve(connection: Payer): number;
}

/** `held` comes from `holdAllCredits` in the same transaction. */
export async function readCreditsLeft(
  db: Db,
  held: ReadonlyMap<string, AccountPlan>,
  connections: readonly Payer[],
): Promise<CreditsLeft> {
  const taken = await readTaken(db, [...held.values()]);
  const ceilingOf = ({ account_id }: Payer) => creditsCeiling(held.get(account_id)!.plan);
  const priced = connections.filter((one) => taken.has(one.account_id) && ceilingOf(one) !== null);
  const prices = await readPrices(db, priced);
  return {
    refusal: ({ account_id }) => refusalOf(held.get(account_id)!, taken.get(account_id)),
    reserve(connection) {
      const of = taken.get(connection.account_id);
      if (!of) return 0;
      of.moving += 1;
      const [ceiling, price] = [ceilingOf(connection), prices.get(connection.id)];
      if (ceiling === null || !price || price.free) return 0;
      const left = ceiling - of.used - of.reserved;
      const usual = price.rows === null ? left : Math.max(1, Math.ceil(price.rows * CREDIT_RATES[connection.kind]));
      const credits = Math.min(left, usual);
      of.reserved += credits;
      return credits;
    },
  };
}

/** `held` comes from `holdCredits` in the same transaction. */
export async function reserveCredits(db: Db, held: AccountPlan, connection: ConnectionRow): Promise<Reservation> {
  const left = await readCreditsLeft(db, new Map([[held.account.id, held]]), [connection]);
  const refusal = left.refusal(connection);
  return refusal ? { refusal } : { refusal, credits: left.reserve(connection) };
}

const LAST_RUNS = 5;

/** Whether the source of each connection is free, and the rows that its last runs loaded on average. */
async function readPrices(
  db: Db,
  connections: readonly Payer[],
): Promise<Map<string, { free: boolean; rows: number | null }>> {
  if (connections.length === 0) return new Map();
  const ids = connections.map(({ id }) => id);
  const found = await db.execute<{ id: string; free: boolean; rows: number | null }>(sql`
    select c.id, coalesce(clock_timestamp() < source.free_until, true) as free, usual.rows
    from connections c join account_connectors source on source.id = c.source_id,
    lateral (
      select avg(loaded)::float8 as rows from (
        select (select coalesce(sum(s.rows_loaded), 0) from stream_runs s where s.connection_run_id = r.id) as loaded
        from connection_runs r where r.connection_id = c.id and r.status = 'succeeded'
        order by r.created_at desc, r.id desc limit ${LAST_RUNS}) last) usual
    where ${inArray(sql`c.id`, ids)}`);
  return new Map(found.map(({ id, ...price }) => [id, price]));
}
