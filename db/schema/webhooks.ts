import { sql } from 'drizzle-orm';
import { bigint, check, integer, pgTable, primaryKey, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { accountId } from './accounts.ts';
import { createdAt, instant } from './columns.ts';
import { accountConnectors } from './connectors.ts';

const count = (name: string) => bigint(name, { mode: 'number' }).notNull().default(0);

/**
 * What a source receives at its address. Each commit of events locks the row, so that positions become visible in their
 * order and the counts are exact.
 */
export const webhookInboxes = pgTable(
  'webhook_inboxes',
  {
    account_connector_id: uuid('account_connector_id')
      .primaryKey()
      .references(() => accountConnectors.id, { onDelete: 'cascade' }),
    account_id: accountId(),
    /** The address follows from it, so that a rotation is an increment. */
    address_version: integer('address_version').notNull().default(1),
    /** Until when the address before this one works. */
    previous_address_until: instant('previous_address_until'),
    /** Of the newest event, in microseconds since 1970, so that no position is used again after a restored backup. */
    last_position: count('last_position'),
    /** Of the newest event that was deleted. */
    released_position: count('released_position'),
    stored_events: count('stored_events'),
    stored_bytes: count('stored_bytes'),
    /** All that were acknowledged, without repetitions. */
    received_events: count('received_events'),
    repeated_events: count('repeated_events'),
    /** In the order in which they arrived first. */
    event_types: text('event_types').array().notNull().default([]),
    last_received_at: instant('last_received_at'),
    created_at: createdAt(),
  },
  (t) => [
    check(
      'webhook_inboxes_counts',
      sql`${t.stored_events} >= 0 and ${t.stored_bytes} >= 0 and ${t.received_events} >= ${t.stored_events} and ${t.repeated_events} >= 0`,
    ),
    check(
      'webhook_inboxes_positions',
      sql`${t.last_position} >= ${t.released_position} and ${t.released_position} >= 0`,
    ),
    check('webhook_inboxes_address', sql`${t.address_version} >= 1`),
  ],
);

/** Events until they are read, and for the retention of their source. */
export const webhookEvents = pgTable(
  'webhook_events',
  {
    account_connector_id: uuid('account_connector_id')
      .notNull()
      .references(() => accountConnectors.id, { onDelete: 'cascade' }),
    position: bigint('position', { mode: 'number' }).notNull(),
    /** The sender's, or one of the service. */
    event_id: text('event_id').notNull(),
    event_type: text('event_type'),
    received_at: instant('received_at').notNull(),
    /** JSON as it is passed on. */
    headers: text('headers').notNull(),
    /** JSON as it was received, with all digits. */
    body: text('body').notNull(),
    bytes: integer('bytes').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.account_connector_id, t.position] }),
    uniqueIndex('webhook_events_id').on(t.account_connector_id, t.event_id),
    check('webhook_events_size', sql`${t.bytes} >= 0 and ${t.position} > 0`),
  ],
);
