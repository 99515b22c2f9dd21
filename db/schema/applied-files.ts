import { sql } from 'drizzle-orm';
import { boolean, check, index, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { accountId, users } from './accounts.ts';
import { knownValues } from './checks.ts';
import { createdAt, id, instant, updatedAt } from './columns.ts';

export const APPLIED_KINDS = ['source', 'destination', 'connection', 'trigger'] as const;

/** An item of a file, with the settings that the file names and what they were when it was applied. */
export interface AppliedItem {
  kind: (typeof APPLIED_KINDS)[number];
  id: string;
  name: string;
  /** The keys that the file has for the item, nested as in the file, with null for each value. */
  settings: Record<string, unknown>;
  /** SHA-256 of the value of each key. */
  digests: Record<string, string>;
}

/** Files of `apply` with which the service compares the account by itself. */
export const appliedFiles = pgTable(
  'applied_files',
  {
    id: id(),
    account_id: accountId(),
    /** The path that was given to `apply`. */
    file: text('file').notNull(),
    /** The owner that the file names. */
    owner: text('owner'),
    /** Whether items of the owner that the file does not name are differences, too. */
    prune: boolean('prune').notNull().default(false),
    items: jsonb('items').$type<AppliedItem[]>().notNull(),
    /** What `apply` would do, as of the last comparison. */
    differences: text('differences').array().notNull().default([]),
    applied_by: uuid('applied_by').references(() => users.id),
    applied_at: instant('applied_at').notNull(),
    checked_at: instant('checked_at').notNull(),
    created_at: createdAt(),
    updated_at: updatedAt(),
  },
  (t) => [
    ...knownValues('applied_files', t),
    check('applied_files_items', sql`jsonb_typeof(${t.items}) = 'array'`),
    uniqueIndex('applied_files_file').on(t.account_id, sql`coalesce(${t.owner}, '')`, t.file),
    index('applied_files_checked').on(t.checked_at),
  ],
);
