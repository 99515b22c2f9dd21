import { sql } from 'drizzle-orm';
import { index, integer, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { createdAt, id, instant, updatedAt } from './columns.ts';

/** Events, written in the transaction of the change that they report. */
export const events = pgTable(
  'events',
  {
    id: id(),
    account_id: uuid('account_id').notNull(),
    event: text('event').notNull(),
    category: text('category').notNull(),
    severity: text('severity').notNull(),
    occurred_at: instant('occurred_at').notNull().default(sql`clock_timestamp()`),
    actor: jsonb('actor')
      .$type<{ type: 'user' | 'schedule' | 'system' | 'automation'; id: string | null; name: string | null }>()
      .notNull(),
    resource: jsonb('resource').$type<{ type: string; id: string; name: string | null }>().notNull(),
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
    causation_depth: integer('causation_depth').notNull().default(0),
    matched_trigger_ids: uuid('matched_trigger_ids').array().notNull().default([]),
    case_ids: uuid('case_ids').array().notNull().default([]),
    /** Number of attempts to evaluate the event. */
    evaluation_attempts: integer('evaluation_attempts').notNull().default(0),
  },
  (t) => [
    index('events_list').on(t.account_id, t.occurred_at, t.id),
    index('events_kind').on(t.account_id, t.event, t.occurred_at, t.id),
    index('events_connection')
      .on(t.account_id, t.connection_id, t.occurred_at, t.id)
      .where(sql`${t.connection_id} is not null`),
    index('events_unprocessed').on(t.occurred_at).where(sql`${t.processing_status} in ('received', 'evaluating')`),
  ],
);

/** Background tasks that are not runs: catalog discovery, metadata export. */
export const tasks = pgTable(
  'tasks',
  {
    id: id(),
    account_id: uuid('account_id').notNull(),
    kind: text('kind', { enum: ['discover_catalog', 'export_metadata'] }).notNull(),
    status: text('status', { enum: ['queued', 'running', 'succeeded', 'failed'] })
      .notNull()
      .default('queued'),
    account_connector_id: uuid('account_connector_id').notNull(),
    connection_id: uuid('connection_id'),
    parameters: jsonb('parameters').$type<Record<string, unknown>>().notNull().default({}),
    result: jsonb('result').$type<Record<string, unknown>>(),
    error: jsonb('error').$type<{ code: string; message: string }>(),
    /** How often a worker has begun it. */
    attempts: integer('attempts').notNull().default(0),
    /** While it runs, by the worker that runs it. */
    heartbeat_at: instant('heartbeat_at'),
    created_by: uuid('created_by'),
    created_at: createdAt(),
    updated_at: updatedAt(),
    finished_at: instant('finished_at'),
  },
  (t) => [index('tasks_live').on(t.account_connector_id, t.kind).where(sql`${t.status} in ('queued', 'running')`)],
);
