import { sql } from 'drizzle-orm';
import { check, index, integer, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { accountId, users } from './accounts.ts';
import { knownValues } from './checks.ts';
import { createdAt, id, instant } from './columns.ts';

/** Consents that users give at a provider, until a source or destination takes the tokens. */
export const oauthConsents = pgTable(
  'oauth_consents',
  {
    id: id(),
    account_id: accountId(),
    user_id: uuid('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    /** Without a foreign key: a new one is stored after the consent. */
    account_connector_id: uuid('account_connector_id'),
    connector_type: text('connector_type', { enum: ['source', 'destination'] }).notNull(),
    connector_name: text('connector_name').notNull(),
    /** `exchanging`: the state was used, and the tokens are requested. `used`: a source or destination has the tokens. */
    status: text('status', { enum: ['pending', 'exchanging', 'completed', 'failed', 'used'] })
      .notNull()
      .default('pending'),
    /** HMAC-SHA256 of the state, hexadecimal. */
    state_hash: text('state_hash').notNull(),
    /** The same of the cookie of the browser that began. Null: a program began, which needs the code of the last page. */
    browser_hash: text('browser_hash'),
    /** The same of the code that the last page shows. */
    code_hash: text('code_hash'),
    wrong_codes: integer('wrong_codes').notNull().default(0),
    /** Parameters, code verifier and, later, the parameters with the tokens, encrypted. */
    sealed: text('sealed').notNull(),
    error_code: text('error_code'),
    error_message: text('error_message'),
    expires_at: instant('expires_at').notNull(),
    created_at: createdAt(),
  },
  (t) => [
    ...knownValues('oauth_consents', t),
    check('oauth_consents_error', sql`(${t.status} = 'failed') = (${t.error_code} is not null)`),
    check('oauth_consents_codes', sql`${t.wrong_codes} >= 0`),
    uniqueIndex('oauth_consents_state').on(t.state_hash),
    index('oauth_consents_expiry').on(t.expires_at),
  ],
);
