import { sql } from 'drizzle-orm';
import { createdAt, instant } from './columns.ts';
import { bigint, boolean, check, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';

/**
 * The root key of the installation, encrypted with each SECRET_KEY that opens it. Secrets, masks and hashes derive from the
 * root, so they stay valid when SECRET_KEY changes. Without rows SECRET_KEY itself is the root.
 */
export const keyRing = pgTable('key_ring', {
  /** Id of the SECRET_KEY. */
  key_id: text('key_id').primaryKey(),
  wrapped_root: text('wrapped_root').notNull(),
  created_at: createdAt(),
});

/**
 * Root keys that came by rotation, from version 2 on, encrypted with each SECRET_KEY that opens them. The first root is in
 * the key ring.
 */
export const rootKeys = pgTable(
  'root_keys',
  {
    /** Id of the SECRET_KEY. */
    key_id: text('key_id').notNull(),
    version: integer('version').notNull(),
    wrapped_root: text('wrapped_root').notNull(),
    created_at: createdAt(),
  },
  (t) => [primaryKey({ columns: [t.key_id, t.version] }), check('root_keys_version', sql`${t.version} >= 2`)],
);

/** Facts of the whole installation, in one row. */
export const installation = pgTable(
  'installation',
  {
    id: boolean('id').primaryKey().default(true),
    /** Id of the newest SECRET_KEY of this database. Null: the next start stores the id of its key. */
    key_id: text('key_id'),
    /** The root that encrypts and hashes. A later one is known to all processes before it is used. */
    root_version: integer('root_version').notNull().default(1),
    /** Hashes of roots before this one are not valid. */
    oldest_root_version: integer('oldest_root_version').notNull().default(1),
    /** Since when no schedule starts runs: the database was restored, and an operator has not released it. */
    held_at: instant('held_at'),
    /** `attempts_fenced` of stream runs that were deleted because of their age. */
    attempts_fenced: bigint('attempts_fenced', { mode: 'number' }).notNull().default(0),
  },
  (t) => [
    check('installation_has_one_row', sql`${t.id}`),
    check('installation_roots', sql`${t.oldest_root_version} between 1 and ${t.root_version}`),
  ],
);
