import { sql } from 'drizzle-orm';
import {
  type AnyPgColumn,
  bigint,
  boolean,
  check,
  date,
  index,
  integer,
  jsonb,
  pgSequence,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import { accountId, users } from './accounts.ts';
import { knownValues, literals } from './checks.ts';
import {
  CONNECTOR_TYPES,
  DESTINATION_SYNC_MODES,
  HELD_STREAM_RUN,
  LIVE_RUN,
  LIVE_STREAM_RUN,
  RUN_STATUSES,
  STREAM_RUN_STATUSES,
  SYNC_MODES,
} from './closed-sets.ts';
import { createdAt, id, instant, updatedAt } from './columns.ts';
import { customRunPlans } from './custom-runs.ts';
import { type ColumnHistory, connectionId, connectionStreams } from './connections.ts';

/** Gives each claim of a stream run a higher fencing token, so that a worker presumed dead cannot write any more. */
export const fenceSequence = pgSequence('stream_run_fence');

/** Why a run or stream run failed, as the API shows it. */
export interface StoredRunError {
  code: string;
  message: string;
  origin: 'source' | 'destination' | 'replication' | 'platform' | 'unknown';
  type: string;
  retryable: boolean;
  stream_name: string | null;
  internal_message: string | null;
  occurred_at: string;
}

export interface StoredWarning {
  code: string;
  message: string;
  stream_name: string | null;
}

/** One line of a run's log, in words. */
export interface StoredLogLine {
  at: string;
  level: 'info' | 'warning' | 'error';
  code: string;
  message: string;
  attempt: number;
}

/** What a stream run has loaded into a table that is not published yet. */
export interface ReadyStream {
  counts: {
    rows_loaded: number;
    rows_updated: number;
    rows_deleted: number;
    bytes_loaded: number;
    rows_rejected?: number;
  };
  /** The columns of the new table, for `connection_streams.loaded_columns`. */
  loaded_columns: Record<string, ColumnHistory>;
}

const count = (name: string) => bigint(name, { mode: 'number' }).notNull().default(0);

/** One execution of a connection. */
export const connectionRuns = pgTable(
  'connection_runs',
  {
    id: id(),
    account_id: accountId(),
    connection_id: connectionId(),
    number: integer('number').notNull(),
    status: text('status', { enum: RUN_STATUSES }).notNull(),
    run_type: text('run_type', { enum: ['plain', 'custom', 'full_refresh'] }).notNull(),
    trigger_type: text('trigger_type', {
      enum: ['schedule', 'manual', 'api', 'rerun', 'custom_plan', 'automation'],
    }).notNull(),
    triggered_by: uuid('triggered_by').references(() => users.id),
    rerun_of_run_id: uuid('rerun_of_run_id').references((): AnyPgColumn => connectionRuns.id),
    /** Length of the chain of trigger actions that led to this run; its events carry the same number. */
    causation_depth: integer('causation_depth').notNull().default(0),
    custom_run_plan_id: uuid('custom_run_plan_id').references(() => customRunPlans.id),
    chunk_index: integer('chunk_index'),
    chunk_count: integer('chunk_count'),
    window_start: date('window_start', { mode: 'string' }),
    window_end: date('window_end', { mode: 'string' }),
    update_cursor: boolean('update_cursor').notNull().default(true),
    custom_run_parameters: jsonb('custom_run_parameters').$type<Record<string, unknown>>(),
    attempt: integer('attempt').notNull().default(1),
    queued_at: instant('queued_at').notNull(),
    started_at: instant('started_at'),
    finished_at: instant('finished_at'),
    stop_requested_at: instant('stop_requested_at'),
    stop_requested_by: uuid('stop_requested_by').references(() => users.id),
    stop_reason: text('stop_reason'),
    skip_reason: text('skip_reason'),
    error: jsonb('error').$type<StoredRunError>(),
    warnings: jsonb('warnings').$type<StoredWarning[]>().notNull().default([]),
    credits_used: count('credits_used'),
    credits_free: count('credits_free'),
    /** Credits reserved while the run is live, estimated from earlier runs; 0 where the billing plan cannot run out. */
    credits_reserved: count('credits_reserved'),
    created_at: createdAt(),
    updated_at: updatedAt(),
  },
  (t) => [
    ...knownValues('connection_runs', t),
    check(
      'connection_runs_finished',
      sql`(${t.finished_at} is not null) = (${t.status} not in (${literals(LIVE_RUN)}))`,
    ),
    check('connection_runs_skipped', sql`(${t.skip_reason} is not null) = (${t.status} = 'skipped')`),
    check('connection_runs_stopping', sql`${t.status} <> 'stopping' or ${t.stop_requested_at} is not null`),
    check('connection_runs_window', sql`${t.window_start} <= ${t.window_end}`),
    check(
      'connection_runs_chunk',
      sql`(${t.custom_run_plan_id} is null) = (${t.chunk_index} is null)
        and (${t.custom_run_plan_id} is null) = (${t.chunk_count} is null)
        and (${t.chunk_index} is null or ${t.chunk_index} between 0 and ${t.chunk_count} - 1)`,
    ),
    check('connection_runs_rerun', sql`${t.rerun_of_run_id} <> ${t.id}`),
    check(
      'connection_runs_counts',
      sql`${t.number} >= 1 and ${t.attempt} >= 1 and ${t.causation_depth} >= 0 and ${t.credits_used} >= 0
        and ${t.credits_free} >= 0 and ${t.credits_reserved} >= 0`,
    ),
    uniqueIndex('connection_runs_number').on(t.connection_id, t.number),
    // At most one live plain run per connection, even when two starts race.
    uniqueIndex('connection_runs_one_live')
      .on(t.connection_id)
      .where(sql`${t.custom_run_plan_id} is null and ${t.status} in (${literals(LIVE_RUN)})`),
    index('connection_runs_list').on(t.connection_id, t.created_at, t.id),
    index('connection_runs_status').on(t.connection_id, t.status, t.created_at, t.id),
    index('connection_runs_account').on(t.account_id, t.created_at, t.connection_id, t.status),
    index('connection_runs_plan')
      .on(t.custom_run_plan_id, t.chunk_index)
      .where(sql`${t.custom_run_plan_id} is not null`),
    index('connection_runs_reruns').on(t.rerun_of_run_id).where(sql`${t.rerun_of_run_id} is not null`),
    index('connection_runs_live')
      .on(t.status, t.queued_at)
      .where(sql`${t.status} in (${literals(LIVE_RUN)})`),
  ],
);

/** Runs whose rows were deleted because of their age, counted by the day on which they were created. */
export const runDays = pgTable(
  'run_days',
  {
    account_id: accountId(),
    /** Without a foreign key: the count outlives the connection. */
    connection_id: uuid('connection_id').notNull(),
    day: date('day', { mode: 'string' }).notNull(),
    status: text('status', { enum: RUN_STATUSES }).notNull(),
    runs: integer('runs').notNull(),
  },
  (t) => [
    ...knownValues('run_days', t),
    primaryKey({ columns: [t.account_id, t.day, t.connection_id, t.status] }),
    check('run_days_counts', sql`${t.runs} >= 1`),
  ],
);

/** One stream of a run. */
export const streamRuns = pgTable(
  'stream_runs',
  {
    id: id(),
    account_id: accountId(),
    connection_id: connectionId(),
    connection_run_id: uuid('connection_run_id')
      .notNull()
      .references(() => connectionRuns.id, { onDelete: 'cascade' }),
    stream_id: uuid('stream_id')
      .notNull()
      .references(() => connectionStreams.id, { onDelete: 'cascade' }),
    stream_name: text('stream_name').notNull(),
    namespace: text('namespace'),
    status: text('status', { enum: STREAM_RUN_STATUSES }).notNull(),
    sync_mode: text('sync_mode', { enum: SYNC_MODES }).notNull(),
    destination_sync_mode: text('destination_sync_mode', { enum: DESTINATION_SYNC_MODES }).notNull(),
    destination_table: text('destination_table'),
    attempt: integer('attempt').notNull().default(1),
    /** Consecutive attempts that committed nothing; too many fail the stream. */
    attempts_without_progress: integer('attempts_without_progress').notNull().default(0),
    /** Worker process of the last claim. */
    worker_id: uuid('worker_id'),
    /** Worker processes that died while they held this stream, since its last progress or orderly end of an attempt. */
    worker_deaths: integer('worker_deaths').notNull().default(0),
    /** Fencing token of the current claim; every write of a worker names it. */
    fence: bigint('fence', { mode: 'number' }).notNull().default(0),
    /** Attempts that lost their claim to a newer one, or that the destination rejected by its fence. */
    attempts_fenced: integer('attempts_fenced').notNull().default(0),
    /** When its job was sent; null while it waits behind the other streams of the run. */
    dispatched_at: instant('dispatched_at'),
    heartbeat_at: instant('heartbeat_at'),
    started_at: instant('started_at'),
    finished_at: instant('finished_at'),
    rows_read: count('rows_read'),
    rows_loaded: count('rows_loaded'),
    rows_updated: count('rows_updated'),
    rows_deleted: count('rows_deleted'),
    rows_rejected: count('rows_rejected'),
    bytes_read: count('bytes_read'),
    bytes_loaded: count('bytes_loaded'),
    /** Bytes of the source's log not yet read for this stream; null for streams without change data capture. */
    log_lag_bytes: bigint('log_lag_bytes', { mode: 'number' }),
    requests_count: count('requests_count'),
    estimated_rows: bigint('estimated_rows', { mode: 'number' }),
    cursor_before: text('cursor_before'),
    cursor_after: text('cursor_after'),
    /** Checkpoint of a custom run. The stream's own state moves only if the run has `update_cursor`. */
    state_after: jsonb('state_after').$type<{ cursor: string | null; [key: string]: unknown }>(),
    /** The snapshot of the source that the stream holds after it, in the source's own form. */
    source_snapshot: text('source_snapshot'),
    /** Generation of the run's shared snapshot that the current attempt reads; null: none. */
    snapshot_generation: integer('snapshot_generation'),
    /**
     * Committed at the destination and not visible yet: what counts once the tables of the run are published. Such a
     * stream run is `pending`, and no worker holds it.
     */
    ready: jsonb('ready').$type<ReadyStream>(),
    /** Jobs that its attempts created at the service of the source, and did not end. */
    source_jobs: jsonb('source_jobs').$type<{ stream: string; id: string }[]>().notNull().default([]),
    /** When the first row left the source; used by benchmarks, not part of the API. */
    first_row_at: instant('first_row_at'),
    rate_limited_until: instant('rate_limited_until'),
    error: jsonb('error').$type<StoredRunError>(),
    warnings: jsonb('warnings').$type<StoredWarning[]>().notNull().default([]),
    /** What its attempts did, oldest first. Only appended to, by statements that update the row anyway. */
    log: jsonb('log').$type<StoredLogLine[]>().notNull().default([]),
    created_at: createdAt(),
    updated_at: updatedAt(),
  },
  (t) => [
    ...knownValues('stream_runs', t),
    check(
      'stream_runs_finished',
      sql`(${t.finished_at} is not null) = (${t.status} not in (${literals(LIVE_STREAM_RUN)}))`,
    ),
    check(
      'stream_runs_held',
      sql`${t.status} not in (${literals(HELD_STREAM_RUN)}) or (${t.fence} > 0 and ${t.heartbeat_at} is not null)`,
    ),
    check(
      'stream_runs_counts',
      sql`${t.attempt} >= 1 and ${t.attempts_without_progress} >= 0 and ${t.worker_deaths} >= 0 and ${t.fence} >= 0 and ${t.rows_read} >= 0
        and ${t.rows_loaded} >= 0 and ${t.rows_updated} >= 0 and ${t.rows_deleted} >= 0 and ${t.rows_rejected} >= 0
        and ${t.bytes_read} >= 0 and ${t.bytes_loaded} >= 0 and ${t.requests_count} >= 0
        and ${t.log_lag_bytes} >= 0 and ${t.estimated_rows} >= 0`,
    ),
    check('stream_runs_ready', sql`${t.ready} is null or ${t.status} in ('pending', 'succeeded', 'failed', 'stopped')`),
    uniqueIndex('stream_runs_stream').on(t.connection_run_id, t.stream_id),
    index('stream_runs_live')
      .on(t.status, t.heartbeat_at)
      .where(sql`${t.status} in ('pending', 'running', 'rate_limited', 'retrying')`),
    index('stream_runs_of_stream').on(t.stream_id, t.status, t.finished_at),
    index('stream_runs_fenced').on(t.attempts_fenced).where(sql`${t.attempts_fenced} > 0`),
  ],
);

/**
 * Batches of a live stream run that a destination without a state has accepted, so that the next attempt does not send
 * them again.
 */
export const deliveredBatches = pgTable(
  'delivered_batches',
  {
    stream_run_id: uuid('stream_run_id')
      .notNull()
      .references(() => streamRuns.id, { onDelete: 'cascade' }),
    /** The idempotency key that the batch was sent with. */
    key: text('key').notNull(),
    rows: integer('rows').notNull().default(0),
    rejected: integer('rejected').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.stream_run_id, t.key] }),
    check('delivered_batches_counts', sql`${t.rows} >= 0 and ${t.rejected} >= 0`),
  ],
);

/** One gzip member of network log entries in the object store. */
export const networkLogSegments = pgTable(
  'network_log_segments',
  {
    id: id(),
    account_id: accountId(),
    connection_run_id: uuid('connection_run_id')
      .notNull()
      .references(() => connectionRuns.id, { onDelete: 'cascade' }),
    stream_run_id: uuid('stream_run_id').references(() => streamRuns.id, { onDelete: 'cascade' }),
    connector_type: text('connector_type', { enum: CONNECTOR_TYPES }).notNull(),
    object_key: text('object_key').notNull(),
    entries: integer('entries').notNull(),
    bytes: integer('bytes').notNull(),
    created_at: createdAt(),
  },
  (t) => [
    ...knownValues('network_log_segments', t),
    check('network_log_segments_size', sql`${t.entries} >= 1 and ${t.bytes} >= 1`),
    index('network_log_segments_run').on(t.connection_run_id, t.stream_run_id, t.connector_type, t.id),
    index('network_log_segments_stream_run').on(t.stream_run_id).where(sql`${t.stream_run_id} is not null`),
    index('network_log_segments_age').on(t.created_at),
  ],
);
