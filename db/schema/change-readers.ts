import { bigint, boolean, index, integer, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { createdAt, instant } from './columns.ts';
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
    source_id: uuid('source_id').notNull(),
    lag_bytes: bigint('lag_bytes', { mode: 'number' }),
    /** The event `change_log_lagging` was emitted. */
    is_lagging: boolean('is_lagging').notNull().default(false),
    /** Number of failed attempts to release the log. */
    failures: integer('failures').notNull().default(0),
    error: text('error'),
    next_look_at: instant('next_look_at').notNull(),
    created_at: createdAt(),
  },
  (t) => [index('change_readers_due').on(t.next_look_at), index('change_readers_source').on(t.source_id)],
);
