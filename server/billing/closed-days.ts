import { type SQL, sql } from 'drizzle-orm';
import type { DaySpan } from '../platform/utc-days.ts';

/** UTC days of an account, as expressions of a statement. */
export interface AccountDays {
  account_id: SQL;
  start: SQL;
  /** Inclusive. */
  end: SQL;
}

export const daysOfAccount = (account_id: string, { start, end }: DaySpan): AccountDays => ({
  account_id: sql`${account_id}::uuid`,
  start: sql`${start}::date`,
  end: sql`${end}::date`,
});

/** The last day that `account_days` holds of an account; later ones are read from the ledger and the runs. */
export const lastClosedDay = (account_id: SQL): SQL => sql`(
  select coalesce(max(day), '-infinity') from account_days where account_id = ${account_id})`;

/** The last day that `stream_days` holds of an account; later ones are read from the ledger. */
export const lastStreamDay = (account_id: SQL): SQL => sql`(
  select coalesce(max(day), '-infinity') from stream_days where account_id = ${account_id})`;

/** For a FROM clause: usage by `connection_id`, `day` and `stream_name`. Several rows may have the same three. */
export function streamUsageOfDays({ account_id, start, end }: AccountDays): SQL {
  const columns = sql`connection_id, day, stream_name, rows_free, rows_paid, credits_used, credits_free, bytes_loaded`;
  return sql`(
    select ${columns} from stream_days where account_id = ${account_id} and day between ${start} and ${end}
    union all
    select ${columns} from usage_ledger
    where account_id = ${account_id} and day between greatest(${start}, ${lastStreamDay(account_id)} + 1) and ${end})`;
}

const openPart = ({ account_id, start, end }: AccountDays): AccountDays => ({
  account_id,
  start: sql`greatest(${start}, ${lastClosedDay(account_id)} + 1)`,
  end,
});

/** For a FROM clause: usage by `day` and `kind`. A day that is not closed has a row for each entry of the ledger. */
export function usageOfDays(days: AccountDays): SQL {
  const columns = sql`day, kind, rows_free, rows_paid, credits_used, credits_free, bytes_loaded`;
  const open = openPart(days);
  return sql`(
    select ${columns} from account_days
    where account_id = ${days.account_id} and day between ${days.start} and ${days.end}
    union all
    select ${columns} from usage_ledger
    where account_id = ${open.account_id} and day between ${open.start} and ${open.end})`;
}

/**
 * For a FROM clause: runs by the `day` on which they were created, with the columns of `account_days`. Several rows may have
 * the same day.
 */
export function runsOfDays(days: AccountDays): SQL {
  return sql`(
    select day, runs, runs_succeeded, runs_partially_succeeded, runs_failed from account_days
    where account_id = ${days.account_id} and day between ${days.start} and ${days.end}
    union all
    select day, ${RUN_SUMS} from ${runsOf(openPart(days))} ran group by day)`;
}

const withStatus = (status: string) => sql`coalesce(sum(ran.runs) filter (where ran.status = ${status}), 0)::int`;

/** The columns of `account_days` from rows of `runsOf` that are named `ran`. */
export const RUN_SUMS: SQL = sql`sum(ran.runs)::int as runs, ${withStatus('succeeded')} as runs_succeeded,
  ${withStatus('partially_succeeded')} as runs_partially_succeeded, ${withStatus('failed')} as runs_failed`;

/**
 * For a FROM clause: the runs created on these days, with `connection_id`, `day`, `status` and their number. Those whose
 * rows were deleted since are counted in `run_days`.
 */
export const runsOf = ({ account_id, start, end }: AccountDays): SQL => sql`(
  select connection_id, (created_at at time zone 'UTC')::date as day, status, 1 as runs from connection_runs
  where account_id = ${account_id} and created_at >= (${start})::timestamp at time zone 'UTC'
    and created_at < (${end} + 1)::timestamp at time zone 'UTC'
  union all
  select connection_id, day, status, runs from run_days
  where account_id = ${account_id} and day between ${start} and ${end})`;
