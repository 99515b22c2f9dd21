import { sql } from 'drizzle-orm';
import { bigint, boolean, check, index, integer, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { createdAt, instant } from './columns.ts';
import { connectionRuns, type StoredRunError } from './runs.ts';

/** A snapshot that a source shares, as its connector describes it. Only that connector reads it. */
export type StoredSnapshot = Record<string, string>;

/**
 * Runs whose full refreshes are read from one snapshot of the source and published together. A keeper in one worker holds
 * the snapshot open, and readers on any worker join it. The row remains until the destination holds nothing unpublished.
 */
export const snapshots = pgTable(
  'snapshots',
  {
    connection_run_id: uuid('connection_run_id')
      .primaryKey()
      .references(() => connectionRuns.id, { onDelete: 'cascade' }),
    /** Grows when a lost snapshot is replaced. What was read from an earlier one is never published. */
    generation: integer('generation').notNull().default(1),
    /** Null: no keeper holds it. */
    snapshot: jsonb('snapshot').$type<StoredSnapshot>(),
    /** Worker process of the keeper. */
    worker_id: uuid('worker_id'),
    /** Fencing token of the keeper, from the sequence of the stream runs. */
    fence: bigint('fence', { mode: 'number' }).notNull().default(0),
    heartbeat_at: instant('heartbeat_at'),
    /** When the source created the snapshot; the source keeps the row versions of that moment since. */
    opened_at: instant('opened_at'),
    /** The run has the warning that the snapshot is old. */
    is_old: boolean('is_old').notNull().default(false),
    /** Why no keeper could open it. */
    error: jsonb('error').$type<StoredRunError>(),
    /** When the job of the keeper was last sent. */
    requested_at: instant('requested_at').notNull(),
    /** When the job that publishes the tables, or removes them, was last sent. Null: they are still being read. */
    publish_requested_at: instant('publish_requested_at'),
    /** Heartbeat of the worker that publishes. Null: none does. */
    publishing_at: instant('publishing_at'),
    publish_attempts: integer('publish_attempts').notNull().default(0),
    /** What the last attempt failed with, for the log. */
    publish_error: text('publish_error'),
    /** The tables are published, or removed: nothing is left to do. */
    settled_at: instant('settled_at'),
    created_at: createdAt(),
  },
  (t) => [
    check('snapshots_counts', sql`${t.generation} >= 1 and ${t.fence} >= 0 and ${t.publish_attempts} >= 0`),
    check(
      'snapshots_held',
      sql`${t.snapshot} is null or (${t.worker_id} is not null and ${t.heartbeat_at} is not null)`,
    ),
    index('snapshots_unsettled').on(t.connection_run_id).where(sql`${t.settled_at} is null`),
  ],
);
