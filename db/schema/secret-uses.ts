import { index, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { accounts } from './accounts.ts';
import { knownValues } from './checks.ts';
import { ACTOR_TYPES, SECRET_PURPOSES } from './closed-sets.ts';
import { id, instant } from './columns.ts';

/**
 * Uses of the secrets of account connectors: one row for each host of a piece of work, stored before the first connection
 * to it. Rows are only inserted.
 */
export const secretUses = pgTable(
  'secret_uses',
  {
    id: id(),
    account_id: uuid('account_id')
      .notNull()
      .references(() => accounts.id),
    /** Without a foreign key: a connector is tested before it is stored. */
    account_connector_id: uuid('account_connector_id').notNull(),
    purpose: text('purpose', { enum: SECRET_PURPOSES }).notNull(),
    /** Name and port, as the connector requested it. */
    host: text('host').notNull(),
    actor_type: text('actor_type', { enum: ACTOR_TYPES }).notNull(),
    /** The user; null for all others. */
    actor_id: uuid('actor_id'),
    connection_run_id: uuid('connection_run_id'),
    stream_run_id: uuid('stream_run_id'),
    occurred_at: instant('occurred_at').notNull(),
  },
  (t) => [...knownValues('secret_uses', t), index('secret_uses_list').on(t.account_connector_id, t.id)],
);
