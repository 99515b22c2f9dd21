import { sql } from 'drizzle-orm';
import { check, index, integer, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core';
import { users } from './accounts.ts';
import { createdAt } from './columns.ts';

/** Responses to POST requests with an Idempotency-Key, kept for 24 hours. */
export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    user_id: uuid('user_id')
      .notNull()
      .references(() => users.id),
    key: text('key').notNull(),
    /** SHA-256 of method, path, query and body. */
    request_hash: text('request_hash').notNull(),
    /** Status of the response; null while the request is in progress. */
    status: integer('status'),
    /** The JSON of the response, encrypted: it can contain what is shown only once, such as an invitation link. */
    sealed_body: text('sealed_body'),
    created_at: createdAt(),
  },
  (t) => [
    primaryKey({ columns: [t.user_id, t.key] }),
    check('idempotency_keys_status', sql`${t.status} between 200 and 599`),
    check('idempotency_keys_answer', sql`(${t.status} is null) = (${t.sealed_body} is null)`),
    check('idempotency_keys_key', sql`length(${t.key}) between 1 and 255`),
    index('idempotency_keys_age').on(t.created_at),
  ],
);
