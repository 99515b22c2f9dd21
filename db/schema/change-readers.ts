import { sql } from 'drizzle-orm';
import { bigint, boolean, check, doublePrecision, index, integer, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { createdAt, instant } from './columns.ts';
import { accountConnectors } from './connectors.ts';
import { connectionStreams } from './connections.ts';

/**
 * CDC consumers: streams for which a source retains its change log, for example in a replication slot. A row exists from
 * before the first read until the log is released, so a source retains nothing for a stream without a row.
 */
export const changeReaders = pgTable(
  'change_readers',
  {
    stream_id: uuid('stream_id')
      .primaryKey()
      .references(() => connectionStreams.id, { onDelete: 'cascade' }),
    source_id: uuid('source_id')
      .notNull()
      .references(() => accountConnectors.id),
    lag_bytes: bigint('lag_bytes', { mode: 'number' }),
    /** Null: measured in bytes only, while nothing was read. */
    lag_seconds: doublePrecision('lag_seconds'),
    lag_measured_at: instant('lag_measured_at'),
    /** The event `change_log_lagging` was emitted. */
    is_lagging: boolean('is_lagging').notNull().default(false),
    /** Number of failed attempts to release the log. */
    failures: integer('failures').notNull().default(0),
    error: text('error'),
    next_look_at: instant('next_look_at').notNull(),
    created_at: createdAt(),
  },
  (t) => [
    check('change_readers_counts', sql`${t.lag_bytes} >= 0 and ${t.lag_seconds} >= 0 and ${t.failures} >= 0`),
    index('change_readers_due').on(t.next_look_at),
    index('change_readers_source').on(t.source_id),
  ],
);
