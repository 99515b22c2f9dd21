import { sql } from 'drizzle-orm';
import { bigint, check, date, index, integer, pgTable, primaryKey, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { accountId } from './accounts.ts';
import { knownValues } from './checks.ts';
import { NOTICED_LIMITS } from './closed-sets.ts';
import { createdAt, id } from './columns.ts';

/**
 * One row per stream run and attempt that committed rows, never changed. Usage and credits are computed from it. The rows
 * of an old day are replaced by their sums.
 */
export const usageLedger = pgTable(
  'usage_ledger',
  {
    id: id(),
    account_id: accountId(),
    /** What was metered, as ids without foreign keys: usage outlives what caused it. */
    connection_id: uuid('connection_id').notNull(),
    connection_run_id: uuid('connection_run_id'),
    /** Null: the sum of all stream runs of this day, connection and stream. */
    stream_run_id: uuid('stream_run_id'),
    attempt: integer('attempt').notNull(),
    /** UTC day that the rows count for. */
    day: date('day', { mode: 'string' }).notNull(),
    kind: text('kind', { enum: ['elt', 'reverse_etl'] }).notNull(),
    stream_name: text('stream_name').notNull(),
    rows_free: bigint('rows_free', { mode: 'number' }).notNull(),
    rows_paid: bigint('rows_paid', { mode: 'number' }).notNull(),
    credits_used: bigint('credits_used', { mode: 'number' }).notNull(),
    /** What the free rows would have cost. */
    credits_free: bigint('credits_free', { mode: 'number' }).notNull(),
    bytes_loaded: bigint('bytes_loaded', { mode: 'number' }).notNull(),
    created_at: createdAt(),
  },
  (t) => [
    ...knownValues('usage_ledger', t),
    check(
      'usage_ledger_counts',
      sql`${t.attempt} >= 1 and ${t.rows_free} >= 0 and ${t.rows_paid} >= 0 and ${t.credits_used} >= 0
        and ${t.credits_free} >= 0 and ${t.bytes_loaded} >= 0`,
    ),
    check('usage_ledger_sum', sql`(${t.connection_run_id} is null) = (${t.stream_run_id} is null)`),
    uniqueIndex('usage_ledger_attempt').on(t.stream_run_id, t.attempt),
    index('usage_ledger_details').on(t.day).where(sql`${t.stream_run_id} is not null`),
    // Index-only scans for the sums of an account and the rows by connection.
    index('usage_ledger_day').on(t.account_id, t.day, t.connection_id, t.rows_free, t.rows_paid),
    index('usage_ledger_connection').on(t.connection_id, t.day),
    index('usage_ledger_sums').on(
      t.account_id,
      t.day,
      t.kind,
      t.credits_used,
      t.rows_free,
      t.rows_paid,
      t.credits_free,
      t.bytes_loaded,
    ),
  ],
);

/**
 * Usage and runs of each account by UTC day and kind, for days that are over and whose runs have all ended. What is of such
 * a day never changes again. Derived from the ledger and the runs, and read instead of them.
 */
export const accountDays = pgTable(
  'account_days',
  {
    account_id: accountId(),
    day: date('day', { mode: 'string' }).notNull(),
    kind: text('kind', { enum: ['elt', 'reverse_etl'] }).notNull(),
    rows_free: bigint('rows_free', { mode: 'number' }).notNull(),
    rows_paid: bigint('rows_paid', { mode: 'number' }).notNull(),
    credits_used: bigint('credits_used', { mode: 'number' }).notNull(),
    credits_free: bigint('credits_free', { mode: 'number' }).notNull(),
    bytes_loaded: bigint('bytes_loaded', { mode: 'number' }).notNull(),
    /** Runs created on the day, of any status. */
    runs: integer('runs').notNull(),
    runs_succeeded: integer('runs_succeeded').notNull(),
    runs_partially_succeeded: integer('runs_partially_succeeded').notNull(),
    runs_failed: integer('runs_failed').notNull(),
  },
  (t) => [
    ...knownValues('account_days', t),
    primaryKey({ columns: [t.account_id, t.day, t.kind] }),
    check(
      'account_days_counts',
      sql`${t.rows_free} >= 0 and ${t.rows_paid} >= 0 and ${t.credits_used} >= 0 and ${t.credits_free} >= 0
        and ${t.bytes_loaded} >= 0 and ${t.runs_succeeded} >= 0 and ${t.runs_partially_succeeded} >= 0
        and ${t.runs_failed} >= 0
        and ${t.runs} >= ${t.runs_succeeded} + ${t.runs_partially_succeeded} + ${t.runs_failed}`,
    ),
  ],
);

/** Rows and runs of each connection by month, for the days in `account_days`. */
export const connectionMonths = pgTable(
  'connection_months',
  {
    account_id: accountId(),
    /** The first day of the month. */
    month: date('month', { mode: 'string' }).notNull(),
    /** Without a foreign key: usage outlives the connection. */
    connection_id: uuid('connection_id').notNull(),
    rows: bigint('rows', { mode: 'number' }).notNull(),
    runs: integer('runs').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.account_id, t.month, t.connection_id] }),
    // Index-only scans for usage by connection, in its order. Nulls first, although there are none, as in `rows desc`.
    index('connection_months_rows').on(t.account_id, t.month, t.rows.desc().nullsFirst(), t.connection_id, t.runs),
    check('connection_months_month', sql`extract(day from ${t.month}) = 1`),
    check('connection_months_counts', sql`${t.rows} >= 0 and ${t.runs} >= 0`),
  ],
);

/**
 * Usage of each stream by UTC day, for days in `account_days`: a stream that runs every minute has 1,440 entries a day in the
 * ledger. Days follow a little later than in `account_days`. Derived from the ledger, and read instead of it.
 */
export const streamDays = pgTable(
  'stream_days',
  {
    account_id: accountId(),
    /** Without a foreign key: usage outlives the connection. */
    connection_id: uuid('connection_id').notNull(),
    day: date('day', { mode: 'string' }).notNull(),
    stream_name: text('stream_name').notNull(),
    rows_free: bigint('rows_free', { mode: 'number' }).notNull(),
    rows_paid: bigint('rows_paid', { mode: 'number' }).notNull(),
    credits_used: bigint('credits_used', { mode: 'number' }).notNull(),
    credits_free: bigint('credits_free', { mode: 'number' }).notNull(),
    bytes_loaded: bigint('bytes_loaded', { mode: 'number' }).notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.connection_id, t.day, t.stream_name] }),
    // The last day of an account, and index-only scans for rows by connection.
    index('stream_days_account').on(t.account_id, t.day, t.connection_id, t.rows_free, t.rows_paid),
    check(
      'stream_days_counts',
      sql`${t.rows_free} >= 0 and ${t.rows_paid} >= 0 and ${t.credits_used} >= 0 and ${t.credits_free} >= 0
        and ${t.bytes_loaded} >= 0`,
    ),
  ],
);

/**
 * Rows and runs of each connection by calendar month and by billing period, up to now together with `connection_period_changes`.
 * Complete for periods that start on or after `accounts.periods_from`.
 */
export const connectionPeriods = pgTable(
  'connection_periods',
  {
    account_id: accountId(),
    /** The first day of the month or of the billing period. One row if both start on it. */
    start: date('start', { mode: 'string' }).notNull(),
    /** Without a foreign key: usage outlives the connection. */
    connection_id: uuid('connection_id').notNull(),
    rows: bigint('rows', { mode: 'number' }).notNull(),
    runs: integer('runs').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.account_id, t.start, t.connection_id] }),
    // Index-only scans for usage by connection, in its order. Nulls first, although there are none, as in `rows desc`.
    index('connection_periods_rows').on(t.account_id, t.start, t.rows.desc().nullsFirst(), t.connection_id, t.runs),
    check('connection_periods_counts', sql`${t.rows} >= 0 and ${t.runs} >= 0`),
  ],
);

/** The number of connections in each period of `connection_periods`. */
export const periodConnections = pgTable(
  'period_connections',
  {
    account_id: accountId(),
    start: date('start', { mode: 'string' }).notNull(),
    connections: integer('connections').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.account_id, t.start] }),
    check('period_connections_counts', sql`${t.connections} >= 1`),
  ],
);

/**
 * Rows and runs that `connection_periods` does not contain yet. Triggers on the ledger and the runs add them, a periodic job
 * moves them.
 */
export const connectionPeriodChanges = pgTable(
  'connection_period_changes',
  {
    account_id: accountId(),
    /** Rows of both tables in the order of their inserts. */
    seq: bigint('seq', { mode: 'number' }).generatedAlwaysAsIdentity(),
    connection_id: uuid('connection_id').notNull(),
    /** UTC day that they count for. */
    day: date('day', { mode: 'string' }).notNull(),
    rows: bigint('rows', { mode: 'number' }).notNull(),
    runs: integer('runs').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.account_id, t.seq] }),
    check('connection_period_changes_counts', sql`${t.rows} >= 0 and ${t.runs} >= 0`),
  ],
);

/** Notices about plan limits. Each threshold is announced once per account and billing period. */
export const planLimitNotices = pgTable(
  'plan_limit_notices',
  {
    account_id: accountId(),
    limit: text('limit', { enum: NOTICED_LIMITS }).notNull(),
    period_start: date('period_start', { mode: 'string' }).notNull(),
    /** Percent of the limit. */
    threshold: integer('threshold').notNull(),
    created_at: createdAt(),
  },
  (t) => [
    ...knownValues('plan_limit_notices', t),
    check('plan_limit_notices_threshold', sql`${t.threshold} between 1 and 100`),
    primaryKey({ columns: [t.account_id, t.limit, t.period_start, t.threshold] }),
  ],
);
