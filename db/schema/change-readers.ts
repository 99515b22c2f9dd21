import { bigint, boolean, index, integer, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { createdAt, instant } from './columns.ts';
import { connectionStreams } from './connections.ts';

/**
 * A stream for which a source keeps its log (a replication slot, say), from before the first read until the source was
 * told to let go: what is not in here keeps nothing.
 */
export const changeReaders = pgTable(
  'change_readers',
  {
    stream_id: uuid('stream_id')
      .primaryKey()
      .references(() => connectionStreams.id, { onDelete: 'cascade' }),
    source_id: uuid('source_id').notNull(),
    lag_bytes: bigint('lag_bytes', { mode: 'number' }),
    /** Users were told that it is too far behind. */
    is_lagging: boolean('is_lagging').notNull().default(false),
    /** Attempts at the release that failed. */
    failures: integer('failures').notNull().default(0),
    error: text('error'),
    next_look_at: instant('next_look_at').notNull(),
    created_at: createdAt(),
  },
  (t) => [index('change_readers_due').on(t.next_look_at), index('change_readers_source').on(t.source_id)],
);
