import { sql } from 'drizzle-orm';
import { check, index, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { apiKeys } from './accounts.ts';
import { createdAt, id, instant } from './columns.ts';

/** Sessions of the web console. Each belongs to an API key and has its permissions, as long as both are valid. */
export const sessions = pgTable(
  'sessions',
  {
    id: id(),
    api_key_id: uuid('api_key_id')
      .notNull()
      .references(() => apiKeys.id, { onDelete: 'cascade' }),
    /** HMAC-SHA256 of the cookie's token, hexadecimal. */
    hash: text('hash').notNull(),
    created_at: createdAt(),
    expires_at: instant('expires_at').notNull(),
    /** Within a minute. A session that is idle for SESSION_IDLE_HOURS ends. */
    last_used_at: instant('last_used_at').notNull().default(sql`now()`),
    /** Until then the session may create keys: its API key was entered again. */
    confirmed_until: instant('confirmed_until'),
  },
  (t) => [
    check('sessions_expiry', sql`${t.expires_at} > ${t.created_at}`),
    uniqueIndex('sessions_hash').on(t.hash),
    index('sessions_api_key').on(t.api_key_id),
    index('sessions_expiry').on(t.expires_at),
  ],
);
