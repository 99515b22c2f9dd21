import { sql } from 'drizzle-orm';
import { check, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { accountId, users } from './accounts.ts';
import { knownValues } from './checks.ts';
import { AUTH_METHODS, CONNECTOR_TYPES } from './closed-sets.ts';
import { createdAt, id, instant, revision, updatedAt } from './columns.ts';

/** A configured source or destination of an account. */
export const accountConnectors = pgTable(
  'account_connectors',
  {
    id: id(),
    account_id: accountId(),
    name: text('name').notNull(),
    connector_type: text('connector_type', { enum: CONNECTOR_TYPES }).notNull(),
    connector_name: text('connector_name').notNull(),
    status: text('status', {
      enum: ['pending_auth', 'pending_test', 'active', 'broken', 'needs_reauth', 'disabled'],
    }).notNull(),
    status_reason: text('status_reason'),
    status_message: text('status_message'),
    auth_method: text('auth_method', { enum: AUTH_METHODS }).notNull().default('none'),
    /** Parameters that are not secrets. */
    parameters: jsonb('parameters').$type<Record<string, unknown>>().notNull().default({}),
    /** The secret parameters as a JSON object, encrypted (`Secrets` in server/platform/secrets.ts). */
    secrets: text('secrets'),
    ssh_tunnel: jsonb('ssh_tunnel').$type<Record<string, unknown>>(),
    datasets: jsonb('datasets').$type<{ name: string; sql: string }[]>().notNull().default([]),
    last_test: jsonb('last_test').$type<{
      status: 'passed' | 'failed' | 'skipped';
      checks: {
        title: string;
        status: 'passed' | 'failed' | 'skipped';
        message: string | null;
        fix?: string;
        statements?: string[];
      }[];
    }>(),
    last_tested_at: instant('last_tested_at'),
    credentials_expire_at: instant('credentials_expire_at'),
    /** Days before expiry for which `credentials_expiring` was emitted, such as {14,7}; 0 stands for the expiry itself. */
    announced_days: integer('announced_days').array().notNull().default([]),
    catalog_status: text('catalog_status', { enum: ['never', 'pending', 'ready', 'failed'] })
      .notNull()
      .default('never'),
    catalog_refreshed_at: instant('catalog_refreshed_at'),
    /** Consecutive configuration and network failures. After three the connector is broken. */
    failure_streak: integer('failure_streak').notNull().default(0),
    /** When the service tests a broken connector again. Null while it is not broken. */
    retest_at: instant('retest_at'),
    /** How often the service has tested it since it broke. Each test doubles the pause. */
    retests: integer('retests').notNull().default(0),
    free_until: instant('free_until'),
    /** The owner that a file of `apply` names. */
    owner: text('owner'),
    /** When `free_period_ending` was emitted. */
    free_end_told_at: instant('free_end_told_at'),
    created_by: uuid('created_by').references(() => users.id),
    created_at: createdAt(),
    updated_at: updatedAt(),
    revision: revision(),
    deleted_at: instant('deleted_at'),
  },
  (t) => [
    ...knownValues('account_connectors', t),
    check('account_connectors_counts', sql`${t.failure_streak} >= 0 and ${t.revision} >= 1`),
    check('account_connectors_parameters', sql`jsonb_typeof(${t.parameters}) = 'object'`),
    check('account_connectors_catalog', sql`${t.catalog_status} <> 'ready' or ${t.catalog_refreshed_at} is not null`),
    uniqueIndex('account_connectors_name')
      .on(t.account_id, t.connector_type, sql`lower(${t.name})`)
      .where(sql`${t.deleted_at} is null`),
    index('account_connectors_retest').on(t.retest_at).where(sql`${t.retest_at} is not null`),
    index('account_connectors_list').on(t.account_id, t.created_at, t.id).where(sql`${t.deleted_at} is null`),
  ],
);

/** The streams that discovery found in a source. */
export const catalogStreams = pgTable(
  'catalog_streams',
  {
    id: id(),
    account_id: accountId(),
    account_connector_id: uuid('account_connector_id')
      .notNull()
      .references(() => accountConnectors.id, { onDelete: 'cascade' }),
    namespace: text('namespace'),
    name: text('name').notNull(),
    /** The stream as the connector described it (`StreamSchema` of the contract). */
    definition: jsonb('definition').$type<Record<string, unknown>>().notNull(),
    /** The user's overrides by field; the key is the path joined with dots. */
    overrides: jsonb('overrides').$type<Record<string, Record<string, unknown>>>().notNull().default({}),
    change_status: text('change_status', { enum: ['unchanged', 'added', 'removed', 'updated'] })
      .notNull()
      .default('unchanged'),
    discovered_at: instant('discovered_at').notNull(),
    removed_at: instant('removed_at'),
  },
  (t) => [
    ...knownValues('catalog_streams', t),
    check('catalog_streams_definition', sql`jsonb_typeof(${t.definition}) = 'object'`),
    uniqueIndex('catalog_streams_name').on(t.account_connector_id, sql`coalesce(${t.namespace}, '')`, t.name),
  ],
);

/** Connectors that an account has added to its catalog, each from an Airbyte manifest. */
export const customConnectors = pgTable(
  'custom_connectors',
  {
    id: id(),
    account_id: accountId(),
    /** As `connector_name` of its sources: `custom.shop`. */
    name: text('name').notNull(),
    display_name: text('display_name').notNull(),
    description: text('description').notNull(),
    /** A data URL of an image. */
    icon: text('icon'),
    documentation_url: text('documentation_url'),
    manifest: text('manifest').notNull(),
    components: text('components'),
    /** Further files by their path. */
    files: jsonb('files').$type<Record<string, string>>(),
    /** Where the manifest was fetched; null: it was uploaded. */
    manifest_url: text('manifest_url'),
    components_url: text('components_url'),
    /** Of the manifest at its address. */
    etag: text('etag'),
    /** SHA-256 of the manifest and the other files, hexadecimal. */
    digest: text('digest').notNull(),
    /** The number of the manifest, beginning with 1. */
    version: integer('version').notNull().default(1),
    /** `ConnectorOutline` of the contract. */
    outline: jsonb('outline').$type<Record<string, unknown>>().notNull(),
    created_by: uuid('created_by').references(() => users.id),
    created_at: createdAt(),
    updated_at: updatedAt(),
    revision: revision(),
  },
  (t) => [
    check('custom_connectors_name_form', sql`${t.name} ~ '^custom\\.[a-z][a-z0-9_]{0,49}$'`),
    check('custom_connectors_counts', sql`${t.version} >= 1 and ${t.revision} >= 1`),
    check('custom_connectors_address', sql`${t.components_url} is null or ${t.manifest_url} is not null`),
    uniqueIndex('custom_connectors_name').on(t.account_id, t.name),
  ],
);
