import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { accounts, users } from './accounts.ts';
import { knownValues, literals } from './checks.ts';
import { LIVE_VERIFICATION, VERIFICATION_STATUSES } from './closed-sets.ts';
import { createdAt, id, instant, updatedAt } from './columns.ts';
import { connections } from './connections.ts';
import { connectionRuns } from './runs.ts';

/** What a verification found out about one stream, as the API shows it. */
export interface VerifiedStream {
  stream_id: string;
  stream_name: string;
  namespace: string | null;
  destination_table: string;
  /** `equal` and `different` are proved; a stream that is `not_compared` has a reason. */
  status: 'equal' | 'different' | 'not_compared';
  reason: { code: string; message: string } | null;
  /** Names of the key's columns in the destination; empty: rows were compared as a multiset. */
  key: string[];
  columns: string[];
  columns_not_compared: { name: string; reason: string }[];
  source_rows: number;
  destination_rows: number;
  ranges: number;
  ranges_different: number;
  /** Keys that only the source has, that only the destination has, and whose rows differ. */
  missing: number;
  extra: number;
  different: number;
  /** Keys that differ because the source has changed since the stream was loaded. */
  changed_since: number;
  /** Rows that were deleted at the source stay in the destination: `extra` ones are no difference. */
  keeps_deleted: boolean;
  /** The search for differences ended early: the numbers are lower limits. */
  is_partial: boolean;
  /** The first differences. */
  differences: { kind: 'missing' | 'extra' | 'different'; key: string[]; changed_since: boolean | null }[];
  repaired: number;
  source_at: string | null;
  source_position: string | null;
  destination_at: string | null;
  duration_ms: number;
}

/** Comparisons of the streams of a connection with their tables: certificates, of which none changes once it has ended. */
export const verifications = pgTable(
  'verifications',
  {
    id: id(),
    account_id: uuid('account_id')
      .notNull()
      .references(() => accounts.id),
    connection_id: uuid('connection_id')
      .notNull()
      .references(() => connections.id),
    /** The last run that loaded streams before it; null: none. */
    connection_run_id: uuid('connection_run_id').references(() => connectionRuns.id),
    status: text('status', { enum: VERIFICATION_STATUSES }).notNull().default('queued'),
    /** Names of streams; null: all. */
    stream_names: text('stream_names').array(),
    /** Rows that differ are loaded again. */
    repair: boolean('repair').notNull().default(false),
    streams: jsonb('streams').$type<VerifiedStream[]>().notNull().default([]),
    error: jsonb('error').$type<{ code: string; message: string }>(),
    /** How often a worker has begun it. */
    attempts: integer('attempts').notNull().default(0),
    /** While it runs, by the worker that runs it. */
    heartbeat_at: instant('heartbeat_at'),
    triggered_by: uuid('triggered_by').references(() => users.id),
    created_at: createdAt(),
    updated_at: updatedAt(),
    started_at: instant('started_at'),
    finished_at: instant('finished_at'),
  },
  (t) => [
    ...knownValues('verifications', t),
    check(
      'verifications_finished',
      sql`(${t.finished_at} is not null) = (${t.status} not in (${literals(LIVE_VERIFICATION)}))`,
    ),
    check('verifications_attempts', sql`${t.attempts} >= 0`),
    check('verifications_failed', sql`${t.error} is null or ${t.status} = 'failed'`),
    check('verifications_streams', sql`jsonb_typeof(${t.streams}) = 'array'`),
    // Two at once would read the same rows twice, and two repairs would write them twice.
    uniqueIndex('verifications_one_live')
      .on(t.connection_id)
      .where(sql`${t.status} in (${literals(LIVE_VERIFICATION)})`),
    index('verifications_list').on(t.connection_id, t.created_at, t.id),
    index('verifications_run').on(t.connection_run_id).where(sql`${t.connection_run_id} is not null`),
  ],
);
