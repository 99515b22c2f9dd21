import { sql } from 'drizzle-orm';
import { bigint, boolean, check, index, integer, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core';
import { accountId } from './accounts.ts';
import { knownValues } from './checks.ts';
import { SENT_OPERATIONS } from './closed-sets.ts';
import { bytes, createdAt, id } from './columns.ts';
import { connectionStreams } from './connections.ts';
import { streamRuns } from './runs.ts';

/**
 * Keys and hashes of the rows that an application holds of a stream, so that a run sends only what differs. Packed: a
 * million rows of a stream are some twenty rows here. Of two entries for one key, the later one counts.
 */
export const sentRows = pgTable(
  'sent_rows',
  {
    stream_id: uuid('stream_id')
      .notNull()
      .references(() => connectionStreams.id, { onDelete: 'cascade' }),
    id: bigint('id', { mode: 'number' }).notNull().generatedAlwaysAsIdentity(),
    /** Identifies the application, the object and the key. Entries of another place do not count. */
    place: text('place').notNull(),
    /** False: the rows were about to be sent, and no response is recorded. */
    settled: boolean('settled').notNull(),
    /** Number of entries in `data`. */
    entries: integer('entries').notNull(),
    data: bytes('data').notNull(),
  },
  (t) => [primaryKey({ columns: [t.stream_id, t.id] }), check('sent_rows_entries', sql`${t.entries} >= 1`)],
);

/** Rows that an application did not accept, with its response. */
export const rejectedRows = pgTable(
  'rejected_rows',
  {
    id: id(),
    account_id: accountId(),
    stream_run_id: uuid('stream_run_id')
      .notNull()
      .references(() => streamRuns.id, { onDelete: 'cascade' }),
    operation: text('operation', { enum: SENT_OPERATIONS }).notNull(),
    /** The match key as JSON: a list of values. */
    key: text('key').notNull(),
    code: text('code').notNull(),
    message: text('message').notNull(),
    /** Status of the response; null: the row was not sent. */
    status: integer('status'),
    /** The beginning of the response. */
    answer: text('answer'),
    created_at: createdAt(),
  },
  (t) => [
    ...knownValues('rejected_rows', t),
    check('rejected_rows_status', sql`${t.status} between 100 and 999`),
    index('rejected_rows_stream_run').on(t.stream_run_id, t.id),
  ],
);
