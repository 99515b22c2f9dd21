import { sql } from 'drizzle-orm';
import { check, index, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { accountId, apiKeys, users } from './accounts.ts';
import { createdAt, id, instant } from './columns.ts';

/** People as the providers of sign-ins know them: users by issuer and subject, never by address alone. */
export const userIdentities = pgTable(
  'user_identities',
  {
    id: id(),
    account_id: accountId(),
    user_id: uuid('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    issuer: text('issuer').notNull(),
    subject: text('subject').notNull(),
    created_at: createdAt(),
    last_sign_in_at: instant('last_sign_in_at').notNull().default(sql`now()`),
  },
  (t) => [uniqueIndex('user_identities_subject').on(t.issuer, t.subject), index('user_identities_user').on(t.user_id)],
);

/**
 * Sessions of the web console. Each belongs to an API key, whose permissions it has, or to the identity of a person, and
 * lasts as long as that is valid.
 */
export const sessions = pgTable(
  'sessions',
  {
    id: id(),
    api_key_id: uuid('api_key_id').references(() => apiKeys.id, { onDelete: 'cascade' }),
    identity_id: uuid('identity_id').references(() => userIdentities.id, { onDelete: 'cascade' }),
    /** The provider of the sign-in, by its id in the settings. */
    provider: text('provider'),
    /** The ID token, encrypted: providers want it at the sign-out. */
    id_token: text('id_token'),
    /** HMAC-SHA256 of the cookie's token, hexadecimal. */
    hash: text('hash').notNull(),
    created_at: createdAt(),
    expires_at: instant('expires_at').notNull(),
    /** Within a minute. A session that is idle for SESSION_IDLE_HOURS ends. */
    last_used_at: instant('last_used_at').notNull().default(sql`now()`),
    /** Until then the session may create keys: its API key was entered again, or the person signed in just now. */
    confirmed_until: instant('confirmed_until'),
  },
  (t) => [
    check('sessions_expiry', sql`${t.expires_at} > ${t.created_at}`),
    check('sessions_owner', sql`num_nonnulls(${t.api_key_id}, ${t.identity_id}) = 1`),
    check('sessions_provider', sql`(${t.identity_id} is null) = (${t.provider} is null)`),
    uniqueIndex('sessions_hash').on(t.hash),
    index('sessions_api_key').on(t.api_key_id),
    index('sessions_identity').on(t.identity_id),
    index('sessions_expiry').on(t.expires_at),
  ],
);
