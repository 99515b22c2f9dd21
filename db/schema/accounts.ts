import { sql } from 'drizzle-orm';
import {
  type AnyPgColumn,
  bigint,
  boolean,
  check,
  date,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import { knownValues } from './checks.ts';
import { PLAN_IDS, type SEVERITIES, VIEWED_PAGES } from './closed-sets.ts';
import { createdAt, id, instant, updatedAt } from './columns.ts';

/** The user's own quiet hours, in the zone of the user: see `QuietSettings`. */
export interface NotificationPreferences {
  quiet_from?: string | null;
  quiet_until?: string | null;
  urgent_severity?: (typeof SEVERITIES)[number] | null;
}

/** A tenant. All other rows belong to one, except for the system roles. */
export const accounts = pgTable(
  'accounts',
  {
    id: id(),
    name: text('name').notNull(),
    timezone: text('timezone').notNull().default('UTC'),
    plan_id: text('plan_id', { enum: PLAN_IDS }).notNull().default('self_hosted'),
    payment_status: text('payment_status', { enum: ['active', 'trial', 'grace', 'ended', 'overdue'] })
      .notNull()
      .default('active'),
    /** Day on which the first billing period started; each lasts a month. Never changes: `connection_periods` follows it. */
    billing_anchor: date('billing_anchor', { mode: 'string' }).notNull().default(sql`current_date`),
    /** The day from which on `connection_periods` is complete. Accounts of earlier versions have a later one. */
    periods_from: date('periods_from', { mode: 'string' }).notNull().default('2000-01-01'),
    /** The number of the newest case. */
    case_counter: integer('case_counter').notNull().default(0),
    /** Since when the account is suspended: nothing runs, and its keys and sessions are refused. */
    suspended_at: instant('suspended_at'),
    suspension_reason: text('suspension_reason'),
    /** Limits of the operator, beside those of the billing plan. Null: unlimited. Rows are those loaded in a billing period. */
    max_rows_per_period: bigint('max_rows_per_period', { mode: 'number' }),
    /** Runs that move data at the same time. */
    max_live_runs: integer('max_live_runs'),
    /** Bytes in the account's folder for files. */
    max_disk_bytes: bigint('max_disk_bytes', { mode: 'number' }),
    /** Days for which network logs are kept. */
    max_log_days: integer('max_log_days'),
    created_at: createdAt(),
    updated_at: updatedAt(),
  },
  (t) => [
    ...knownValues('accounts', t),
    check('accounts_case_counter', sql`${t.case_counter} >= 0`),
    check(
      'accounts_limits',
      sql`${t.max_rows_per_period} >= 0 and ${t.max_live_runs} >= 0 and ${t.max_disk_bytes} >= 0 and ${t.max_log_days} >= 1`,
    ),
    check('accounts_suspension', sql`${t.suspension_reason} is null or ${t.suspended_at} is not null`),
  ],
);

/** The account that a row belongs to. */
export const accountId = () =>
  uuid('account_id')
    .notNull()
    .references(() => accounts.id);

/** A person or a program with access to an account. Rows stay when a user is deleted, so that history keeps its names. */
export const users = pgTable(
  'users',
  {
    id: id(),
    account_id: accountId(),
    /** A service account is a program: it has keys and roles, but no address, invitation or session. */
    kind: text('kind', { enum: ['person', 'service_account'] })
      .notNull()
      .default('person'),
    email: text('email').notNull(),
    full_name: text('full_name').notNull(),
    status: text('status', { enum: ['invited', 'active', 'disabled'] }).notNull(),
    /** Key of the picture in the object store; null if there is none. */
    avatar_key: text('avatar_key'),
    avatar_updated_at: instant('avatar_updated_at'),
    timezone: text('timezone'),
    locale: text('locale'),
    onboarding_state: jsonb('onboarding_state').$type<Record<string, unknown>>().notNull().default({}),
    notification_preferences: jsonb('notification_preferences').$type<NotificationPreferences>().notNull().default({}),
    /** Groups at the provider that SCIM has put the user in. Roles follow from them: see OIDC_PROVIDERS. */
    provider_groups: text('provider_groups').array().notNull().default([]),
    invited_by: uuid('invited_by').references((): AnyPgColumn => users.id),
    invited_at: instant('invited_at'),
    /** HMAC of the one-time token in the invitation link; null once it was used. */
    invitation_hash: text('invitation_hash'),
    invitation_expires_at: instant('invitation_expires_at'),
    last_login_at: instant('last_login_at'),
    last_api_request_at: instant('last_api_request_at'),
    created_at: createdAt(),
    updated_at: updatedAt(),
    deleted_at: instant('deleted_at'),
  },
  (t) => [
    ...knownValues('users', t),
    check('users_email', sql`${t.email} like '%_@_%'`),
    check('users_invitation', sql`${t.invitation_hash} is null or ${t.invitation_expires_at} is not null`),
    check(
      'users_service_account',
      sql`${t.kind} = 'person' or (${t.status} <> 'invited' and ${t.invitation_hash} is null)`,
    ),
    check('users_avatar', sql`${t.avatar_key} is null or ${t.avatar_updated_at} is not null`),
    uniqueIndex('users_email').on(t.account_id, sql`lower(${t.email})`).where(sql`${t.deleted_at} is null`),
    uniqueIndex('users_invitation').on(t.invitation_hash).where(sql`${t.invitation_hash} is not null`),
  ],
);

/** A named set of permissions. */
export const roles = pgTable(
  'roles',
  {
    id: id(),
    /** Null for the system roles, which every account shares. */
    account_id: uuid('account_id').references(() => accounts.id),
    name: text('name').notNull(),
    description: text('description'),
    is_system: boolean('is_system').notNull().default(false),
    permissions: text('permissions').array().notNull(),
    created_at: createdAt(),
    updated_at: updatedAt(),
  },
  (t) => [
    check('roles_owner', sql`${t.is_system} = (${t.account_id} is null)`),
    uniqueIndex('roles_name').on(
      sql`coalesce(${t.account_id}, '00000000-0000-0000-0000-000000000000')`,
      sql`lower(${t.name})`,
    ),
  ],
);

/** Which user has which role. */
export const userRoles = pgTable(
  'user_roles',
  {
    user_id: uuid('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    role_id: uuid('role_id')
      .notNull()
      .references(() => roles.id, { onDelete: 'cascade' }),
    created_at: createdAt(),
  },
  (t) => [primaryKey({ columns: [t.user_id, t.role_id] }), index('user_roles_role').on(t.role_id)],
);

/** Keys of users for the API. A user has one valid key without a name at a time, and any number with one. */
export const apiKeys = pgTable(
  'api_keys',
  {
    id: id(),
    account_id: accountId(),
    user_id: uuid('user_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    /** The readable start of the key, for lists. It does not reveal the key. */
    prefix: text('prefix').notNull(),
    /** HMAC-SHA256 of the whole key, hexadecimal. */
    hash: text('hash').notNull(),
    /** What uses the key, for keys of programs. Null: the key with which the user signs in. */
    name: text('name'),
    /** The permissions that the key may use, of those that the user has. Null: all of them. */
    scopes: text('scopes').array(),
    created_at: createdAt(),
    expires_at: instant('expires_at').notNull(),
    revoked_at: instant('revoked_at'),
    last_used_at: instant('last_used_at'),
    /** Days before expiry for which `api_key_expiring` was emitted, such as {14,7}; 0 stands for `api_key_expired`. */
    announced_days: integer('announced_days').array().notNull().default([]),
  },
  (t) => [
    check('api_keys_scopes', sql`${t.scopes} is null or ${t.name} is not null`),
    uniqueIndex('api_keys_hash').on(t.hash),
    index('api_keys_user').on(t.user_id),
    index('api_keys_expiry').on(t.expires_at).where(sql`${t.revoked_at} is null and 0 <> all(${t.announced_days})`),
  ],
);

/** The filters of a list under a name. A view that is not shared is seen by its user alone. */
export const savedViews = pgTable(
  'saved_views',
  {
    id: id(),
    account_id: accountId(),
    created_by: uuid('created_by')
      .notNull()
      .references(() => users.id),
    /** The list that the view filters. */
    page: text('page', { enum: VIEWED_PAGES }).notNull(),
    name: text('name').notNull(),
    /** The filters as in the address of the list, such as `state=failing&tag=sales`. */
    query: text('query').notNull(),
    /** Whether every user of the account sees the view. */
    is_shared: boolean('is_shared').notNull().default(false),
    created_at: createdAt(),
    updated_at: updatedAt(),
  },
  (t) => [
    ...knownValues('saved_views', t),
    check('saved_views_query', sql`${t.query} <> ''`),
    uniqueIndex('saved_views_shared').on(t.account_id, t.page, sql`lower(${t.name})`).where(sql`${t.is_shared}`),
    uniqueIndex('saved_views_own').on(t.created_by, t.page, sql`lower(${t.name})`).where(sql`not ${t.is_shared}`),
  ],
);
