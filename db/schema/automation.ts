import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { accountId, users } from './accounts.ts';
import { knownValues, literals } from './checks.ts';
import { ACTOR_TYPES, EVENT_CATEGORIES, SEVERITIES } from './closed-sets.ts';
import { createdAt, id, instant, updatedAt } from './columns.ts';
import { connections } from './connections.ts';
import { accountConnectors } from './connectors.ts';

/** Events, written in the transaction of the change that they report. */
export const events = pgTable(
  'events',
  {
    id: id(),
    account_id: accountId(),
    event: text('event').notNull(),
    category: text('category', { enum: EVENT_CATEGORIES }).notNull(),
    severity: text('severity', { enum: SEVERITIES }).notNull(),
    occurred_at: instant('occurred_at').notNull().default(sql`clock_timestamp()`),
    actor: jsonb('actor')
      .$type<{ type: (typeof ACTOR_TYPES)[number]; id: string | null; name: string | null }>()
      .notNull(),
    resource: jsonb('resource').$type<{ type: string; id: string; name: string | null }>().notNull(),
    /** What the event is about, as ids without foreign keys: an event outlives what it reports. */
    connection_id: uuid('connection_id'),
    connection_run_id: uuid('connection_run_id'),
    stream_run_id: uuid('stream_run_id'),
    account_connector_id: uuid('account_connector_id'),
    user_id: uuid('user_id'),
    summary: text('summary').notNull(),
    payload: jsonb('payload').$type<Record<string, unknown>>().notNull().default({}),
    processing_status: text('processing_status', { enum: ['received', 'evaluating', 'processed', 'failed'] })
      .notNull()
      .default('received'),
    /** Length of the chain of trigger actions that led to the event. */
    causation_depth: integer('causation_depth').notNull().default(0),
    matched_trigger_ids: uuid('matched_trigger_ids').array().notNull().default([]),
    case_ids: uuid('case_ids').array().notNull().default([]),
    /** Number of attempts to evaluate the event. */
    evaluation_attempts: integer('evaluation_attempts').notNull().default(0),
  },
  (t) => [
    ...knownValues('events', t),
    check('events_event', sql`${t.event} ~ '^[a-z]+(_[a-z]+)*$'`),
    check('events_actor', sql`coalesce(${t.actor} ->> 'type', '') in (${literals(ACTOR_TYPES)})`),
    check('events_counts', sql`${t.causation_depth} >= 0 and ${t.evaluation_attempts} >= 0`),
    index('events_list').on(t.account_id, t.occurred_at, t.id),
    index('events_kind').on(t.account_id, t.event, t.occurred_at, t.id),
    index('events_connection')
      .on(t.account_id, t.connection_id, t.occurred_at, t.id)
      .where(sql`${t.connection_id} is not null`),
    index('events_age').on(t.occurred_at).where(sql`${t.processing_status} in ('processed', 'failed')`),
    index('events_unprocessed').on(t.occurred_at).where(sql`${t.processing_status} in ('received', 'evaluating')`),
  ],
);

/** Background tasks that are not runs: catalog discovery, metadata export. */
export const tasks = pgTable(
  'tasks',
  {
    id: id(),
    account_id: accountId(),
    kind: text('kind', { enum: ['discover_catalog', 'export_metadata'] }).notNull(),
    status: text('status', { enum: ['queued', 'running', 'succeeded', 'failed'] })
      .notNull()
      .default('queued'),
    account_connector_id: uuid('account_connector_id')
      .notNull()
      .references(() => accountConnectors.id),
    connection_id: uuid('connection_id').references(() => connections.id),
    parameters: jsonb('parameters').$type<Record<string, unknown>>().notNull().default({}),
    result: jsonb('result').$type<Record<string, unknown>>(),
    error: jsonb('error').$type<{ code: string; message: string }>(),
    /** How often a worker has begun it. */
    attempts: integer('attempts').notNull().default(0),
    /** While it runs, by the worker that runs it. */
    heartbeat_at: instant('heartbeat_at'),
    created_by: uuid('created_by').references(() => users.id),
    created_at: createdAt(),
    updated_at: updatedAt(),
    finished_at: instant('finished_at'),
  },
  (t) => [
    ...knownValues('tasks', t),
    check('tasks_finished', sql`(${t.finished_at} is not null) = (${t.status} in ('succeeded', 'failed'))`),
    check('tasks_attempts', sql`${t.attempts} >= 0`),
    check('tasks_failed', sql`(${t.error} is not null) = (${t.status} = 'failed')`),
    index('tasks_live').on(t.account_connector_id, t.kind).where(sql`${t.status} in ('queued', 'running')`),
  ],
);

export const APPLIED_KINDS = ['source', 'destination', 'connection', 'trigger'] as const;

/** An item of a file, with the settings that the file names and what they were when it was applied. */
export interface AppliedItem {
  kind: (typeof APPLIED_KINDS)[number];
  id: string;
  name: string;
  /** The keys that the file has for the item, nested as in the file, with null for each value. */
  settings: Record<string, unknown>;
  /** SHA-256 of the value of each key. */
  digests: Record<string, string>;
}

/** Files of `apply` with which the service compares the account by itself. */
export const appliedFiles = pgTable(
  'applied_files',
  {
    id: id(),
    account_id: accountId(),
    /** The path that was given to `apply`. */
    file: text('file').notNull(),
    /** The owner that the file names. */
    owner: text('owner'),
    /** Whether items of the owner that the file does not name are differences, too. */
    prune: boolean('prune').notNull().default(false),
    items: jsonb('items').$type<AppliedItem[]>().notNull(),
    /** What `apply` would do, as of the last comparison. */
    differences: text('differences').array().notNull().default([]),
    applied_by: uuid('applied_by').references(() => users.id),
    applied_at: instant('applied_at').notNull(),
    checked_at: instant('checked_at').notNull(),
    created_at: createdAt(),
    updated_at: updatedAt(),
  },
  (t) => [
    ...knownValues('applied_files', t),
    check('applied_files_items', sql`jsonb_typeof(${t.items}) = 'array'`),
    uniqueIndex('applied_files_file').on(t.account_id, sql`coalesce(${t.owner}, '')`, t.file),
    index('applied_files_checked').on(t.checked_at),
  ],
);
