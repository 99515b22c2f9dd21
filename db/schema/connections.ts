import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  date,
  index,
  integer,
  jsonb,
  pgTable,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import type { LogicalType } from './logical-types.ts';
import { accountId, users } from './accounts.ts';
import { knownValues, literals } from './checks.ts';
import { DESTINATION_SYNC_MODES, SCHEDULE_TYPES, SYNC_MODES } from './closed-sets.ts';
import { createdAt, id, instant, revision, updatedAt } from './columns.ts';
import { accountConnectors } from './connectors.ts';

export interface StoredSchedule {
  type: (typeof SCHEDULE_TYPES)[number];
  interval_minutes: number | null;
  cron_expression: string | null;
  timezone: string;
  time_of_day: string | null;
}

/** A pipeline from a source to a destination. */
export const connections = pgTable(
  'connections',
  {
    id: id(),
    account_id: accountId(),
    name: text('name').notNull(),
    description: text('description'),
    kind: text('kind', { enum: ['elt', 'reverse_etl'] })
      .notNull()
      .default('elt'),
    source_id: uuid('source_id')
      .notNull()
      .references(() => accountConnectors.id),
    destination_id: uuid('destination_id')
      .notNull()
      .references(() => accountConnectors.id),
    status: text('status', { enum: ['active', 'paused', 'auto_disabled', 'locked'] })
      .notNull()
      .default('active'),
    status_reason: text('status_reason'),
    /** While the connection is locked: the status and reason to restore afterwards. */
    locked_from: jsonb('locked_from').$type<{ status: 'active' | 'paused' | 'auto_disabled'; reason: string | null }>(),
    schedule: jsonb('schedule').$type<StoredSchedule>().notNull(),
    next_run_at: instant('next_run_at'),
    /** When all streams are verified by themselves; null: never. */
    verification_schedule: jsonb('verification_schedule').$type<StoredSchedule>(),
    next_verification_at: instant('next_verification_at'),
    /** Since when the schedule has been active. Data can be late only after this time. */
    ticking_since: instant('ticking_since').notNull().default(sql`now()`),
    /** When `data_delayed` was last emitted. If that is before the last success, the delay is over. */
    delay_told_at: instant('delay_told_at'),
    backfill_days: integer('backfill_days').notNull().default(0),
    start_date: date('start_date', { mode: 'string' }),
    destination_schema: text('destination_schema'),
    table_prefix: text('table_prefix').notNull().default(''),
    schema_change_policy: text('schema_change_policy', {
      enum: ['ignore', 'propagate_columns', 'propagate_fully', 'disable_connection'],
    })
      .notNull()
      .default('propagate_columns'),
    schema_change_status: text('schema_change_status', { enum: ['no_change', 'non_breaking', 'breaking'] })
      .notNull()
      .default('no_change'),
    catalog_refreshed_at: instant('catalog_refreshed_at'),
    /** Whether the full refreshes of a run show one moment of the source, where source and destination can. */
    consistency: text('consistency', { enum: ['run', 'stream'] })
      .notNull()
      .default('run'),
    /** What to do with values that the destination cannot store exactly. */
    inexact_values: text('inexact_values', { enum: ['refuse', 'allow'] })
      .notNull()
      .default('refuse'),
    /** What to do with rows that the destination cannot load. */
    rejected_rows_policy: text('rejected_rows_policy', { enum: ['fail', 'keep'] })
      .notNull()
      .default('fail'),
    /** With `keep`: the limit of such rows per stream and run. */
    max_rejected_rows: integer('max_rejected_rows').notNull().default(1000),
    max_parallel_streams: integer('max_parallel_streams').notNull().default(4),
    notify_on_failure: boolean('notify_on_failure').notNull().default(true),
    tags: text('tags').array().notNull().default([]),
    /** One to four levels, such as `Finance/Invoices`. Folders exist as long as connections are in them. */
    folder: text('folder'),
    /** The owner that a file of `apply` names. */
    owner: text('owner'),
    /** The number of the newest run. */
    run_counter: integer('run_counter').notNull().default(0),
    consecutive_failures: integer('consecutive_failures').notNull().default(0),
    last_succeeded_at: instant('last_succeeded_at'),
    last_failed_at: instant('last_failed_at'),
    created_by: uuid('created_by').references(() => users.id),
    updated_by: uuid('updated_by').references(() => users.id),
    created_at: createdAt(),
    updated_at: updatedAt(),
    revision: revision(),
    deleted_at: instant('deleted_at'),
  },
  (t) => [
    ...knownValues('connections', t),
    check('connections_sides', sql`${t.source_id} <> ${t.destination_id}`),
    check('connections_lock', sql`${t.locked_from} is null or ${t.status} = 'locked'`),
    check('connections_schedule', sql`coalesce(${t.schedule} ->> 'type', '') in (${literals(SCHEDULE_TYPES)})`),
    check(
      'connections_verification_schedule',
      sql`coalesce(${t.verification_schedule} ->> 'type', 'manual') in ('manual', 'interval', 'cron')`,
    ),
    check('connections_next_run', sql`${t.next_run_at} is null or ${t.deleted_at} is null`),
    check('connections_parallel_streams', sql`${t.max_parallel_streams} between 1 and 50`),
    check('connections_backfill_days', sql`${t.backfill_days} between 0 and 365`),
    check(
      'connections_counts',
      sql`${t.max_rejected_rows} >= 0 and ${t.run_counter} >= 0 and ${t.consecutive_failures} >= 0
        and ${t.revision} >= 1`,
    ),
    check('connections_folder', sql`${t.folder} ~ '^[^/]+(/[^/]+){0,3}$' and length(${t.folder}) <= 200`),
    uniqueIndex('connections_name').on(t.account_id, sql`lower(${t.name})`).where(sql`${t.deleted_at} is null`),
    index('connections_list').on(t.account_id, t.created_at, t.id).where(sql`${t.deleted_at} is null`),
    index('connections_status').on(t.account_id, t.status, t.created_at, t.id).where(sql`${t.deleted_at} is null`),
    index('connections_tags').using('gin', t.tags).where(sql`${t.deleted_at} is null`),
    // The operator class serves folders below one, whatever the collation of the database.
    index('connections_folder_list')
      .on(t.account_id, t.folder.op('text_pattern_ops'))
      .where(sql`${t.folder} is not null and ${t.deleted_at} is null`),
    index('connections_due').on(t.next_run_at).where(sql`${t.next_run_at} is not null and ${t.deleted_at} is null`),
    index('connections_verification_due')
      .on(t.next_verification_at)
      .where(sql`${t.next_verification_at} is not null and ${t.deleted_at} is null`),
    index('connections_source').on(t.source_id).where(sql`${t.deleted_at} is null`),
    index('connections_destination').on(t.destination_id).where(sql`${t.deleted_at} is null`),
  ],
);

/** The connection that a row belongs to. */
export const connectionId = (actions?: { onDelete: 'cascade' }) =>
  uuid('connection_id')
    .notNull()
    .references(() => connections.id, actions);

/** The types with which a column of the destination was last written. */
export interface ColumnHistory {
  type: LogicalType;
  source_type: string | null;
  dialect: string | null;
}

/** By the id of each. */
export interface DetailHistory {
  partitions: Record<string, [name: string, file: string]>;
  enum_labels: Record<string, string>;
}

/** What a connection does with one stream of its source. */
export const connectionStreams = pgTable(
  'connection_streams',
  {
    id: id(),
    account_id: accountId(),
    connection_id: connectionId({ onDelete: 'cascade' }),
    namespace: text('namespace'),
    name: text('name').notNull(),
    selected: boolean('selected').notNull().default(true),
    sync_mode: text('sync_mode', { enum: SYNC_MODES }).notNull(),
    destination_sync_mode: text('destination_sync_mode', { enum: DESTINATION_SYNC_MODES }).notNull(),
    cursor_field: jsonb('cursor_field').$type<string[]>(),
    primary_key: jsonb('primary_key').$type<string[][]>(),
    destination_table: text('destination_table'),
    /** Other streams may write to the same table. */
    shared_destination_table: boolean('shared_destination_table').notNull().default(false),
    /** Set by triggers: the name of the table with the prefix of the connection, in lower case. */
    written_table: text('written_table').notNull().default(''),
    backfill_days: integer('backfill_days'),
    /** ConnectionField[] as in the API; empty for all fields. */
    fields: jsonb('fields').$type<unknown[]>().notNull().default([]),
    filters: jsonb('filters').$type<unknown[]>().notNull().default([]),
    mapping: jsonb('mapping').$type<unknown[]>(),
    dataset_sql: text('dataset_sql'),
    /** The source's own state after the last committed checkpoint. Only `cursor` has a meaning for the engine. */
    state: jsonb('state').$type<{ cursor: string | null; [key: string]: unknown }>(),
    /** Number of checkpoints. The destination stores it too; after a crash the higher number is right. */
    state_version: bigint('state_version', { mode: 'number' }).notNull().default(0),
    /** `state_version` of the last commit that the destination confirmed; null: none since the state was last set. */
    committed_version: bigint('committed_version', { mode: 'number' }),
    cursor_updated_at: instant('cursor_updated_at'),
    /** The types with which each column of the destination was last written, by name. */
    loaded_columns: jsonb('loaded_columns').$type<Record<string, ColumnHistory>>(),
    /** `details` of the stream at the start of the last run. */
    loaded_details: jsonb('loaded_details').$type<DetailHistory>(),
    row_count_last_run: bigint('row_count_last_run', { mode: 'number' }),
    /** The table has everything that the source had at this moment; null: not loaded since it was given this name. */
    fresh_at: instant('fresh_at'),
  },
  (t) => [
    ...knownValues('connection_streams', t),
    check('connection_streams_backfill_days', sql`${t.backfill_days} between 0 and 365`),
    check('connection_streams_counts', sql`${t.state_version} >= 0 and ${t.row_count_last_run} >= 0`),
    check(
      'connection_streams_lists',
      sql`jsonb_typeof(${t.fields}) = 'array' and jsonb_typeof(${t.filters}) = 'array'
        and jsonb_typeof(coalesce(${t.mapping}, '[]')) = 'array'`,
    ),
    uniqueIndex('connection_streams_name').on(t.connection_id, sql`coalesce(${t.namespace}, '')`, t.name),
    index('connection_streams_written_table').on(t.account_id, t.written_table).where(sql`${t.selected}`),
    index('connection_streams_mapped')
      .on(t.account_id, t.connection_id)
      .where(sql`${t.fields} <> '[]'::jsonb or ${t.mapping} is not null`),
  ],
);

/** Schema changes that wait for a review, from what the connection uses to what the source has. */
export const schemaChanges = pgTable(
  'schema_changes',
  {
    id: id(),
    account_id: accountId(),
    connection_id: connectionId({ onDelete: 'cascade' }),
    namespace: text('namespace'),
    stream_name: text('stream_name').notNull(),
    subject: text('subject', { enum: ['stream', 'field', 'primary_key', 'cursor'] }).notNull(),
    field_path: jsonb('field_path').$type<string[]>(),
    /** `Fact` of the schema diff; null if it did not exist. */
    before: jsonb('before').$type<unknown>(),
    after: jsonb('after').$type<unknown>(),
    breaking: boolean('breaking').notNull(),
    discovered_at: createdAt(),
  },
  (t) => [
    ...knownValues('schema_changes', t),
    check('schema_changes_sides', sql`${t.before} is not null or ${t.after} is not null`),
    check('schema_changes_field', sql`${t.subject} <> 'field' or ${t.field_path} is not null`),
    index('schema_changes_connection').on(t.connection_id),
  ],
);
