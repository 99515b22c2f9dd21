import { sql } from 'drizzle-orm';
import {
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import { accountId, users } from './accounts.ts';
import { knownValues } from './checks.ts';
import { ACTION_TYPES, CASE_ENTRIES, DELIVERY_REASONS, SEVERITIES } from './closed-sets.ts';
import { accountConnectors } from './connectors.ts';
import { events } from './automation.ts';
import { createdAt, id, instant, updatedAt } from './columns.ts';

/** A rule over events, and what to do when it fires. */
export const triggers = pgTable(
  'triggers',
  {
    id: id(),
    account_id: accountId(),
    name: text('name').notNull(),
    description: text('description'),
    /** Source text as the user wrote it; null if `condition` is set. */
    rule: text('rule'),
    condition: jsonb('condition').$type<unknown>(),
    /** The rule in the form that is evaluated. */
    normalized_rule: text('normalized_rule').notNull(),
    /** TriggerAction[] without secrets. */
    actions: jsonb('actions').$type<Record<string, unknown>[]>().notNull(),
    /** The secrets of the actions by index, encrypted. */
    secrets: text('secrets'),
    enabled: boolean('enabled').notNull().default(true),
    event_types: text('event_types').array(),
    /** Event kinds that the rule can match, derived from the rule; null for all. */
    matched_kinds: text('matched_kinds').array(),
    severity: text('severity', { enum: SEVERITIES }).notNull(),
    threshold: integer('threshold').notNull().default(1),
    within_seconds: integer('within_seconds').notNull().default(0),
    posture: text('posture', { enum: ['reactive', 'proactive'] })
      .notNull()
      .default('reactive'),
    expect: jsonb('expect').$type<unknown>(),
    group_by: text('group_by').array().notNull(),
    cooldown_seconds: integer('cooldown_seconds').notNull().default(0),
    case_settings: jsonb('case_settings').$type<Record<string, unknown>>().notNull(),
    is_system: boolean('is_system').notNull().default(false),
    /** Which of the system triggers it is. */
    system_key: text('system_key'),
    /** The owner that a file of `apply` names. */
    owner: text('owner'),
    state: text('state', { enum: ['idle', 'pending', 'triggered', 'cooldown', 'errored', 'auto_disabled'] })
      .notNull()
      .default('idle'),
    last_evaluated_at: instant('last_evaluated_at'),
    last_fired_at: instant('last_fired_at'),
    fire_count: integer('fire_count').notNull().default(0),
    error_count: integer('error_count').notNull().default(0),
    consecutive_errors: integer('consecutive_errors').notNull().default(0),
    last_error: text('last_error'),
    created_by: uuid('created_by').references(() => users.id),
    created_at: createdAt(),
    updated_at: updatedAt(),
    deleted_at: instant('deleted_at'),
  },
  (t) => [
    ...knownValues('triggers', t),
    check('triggers_rule', sql`(${t.rule} is null) <> (${t.condition} is null)`),
    check('triggers_system', sql`${t.is_system} = (${t.system_key} is not null)`),
    check('triggers_lists', sql`jsonb_typeof(${t.actions}) = 'array' and jsonb_typeof(${t.case_settings}) = 'object'`),
    check(
      'triggers_counts',
      sql`${t.threshold} >= 1 and ${t.within_seconds} >= 0 and ${t.cooldown_seconds} >= 0 and ${t.fire_count} >= 0
        and ${t.error_count} >= 0 and ${t.consecutive_errors} >= 0`,
    ),
    uniqueIndex('triggers_name')
      .on(t.account_id, sql`lower(${t.name})`)
      .where(sql`${t.deleted_at} is null and not ${t.is_system}`),
    uniqueIndex('triggers_system').on(t.account_id, t.system_key).where(sql`${t.system_key} is not null`),
    index('triggers_list').on(t.account_id, t.created_at, t.id).where(sql`${t.deleted_at} is null`),
  ],
);

/** Threshold counting, cooldown and expectation of one group of one trigger. */
export const triggerGroups = pgTable(
  'trigger_groups',
  {
    trigger_id: uuid('trigger_id')
      .notNull()
      .references(() => triggers.id, { onDelete: 'cascade' }),
    /** SHA-256 of the canonical group values. */
    group_key: text('group_key').notNull(),
    group: jsonb('group').$type<Record<string, unknown>>().notNull(),
    /** Times of the matches within the window, oldest first. */
    matched_at: text('matched_at').array().notNull().default([]),
    cooldown_until: instant('cooldown_until'),
    /** For proactive triggers: when the expected event is overdue. */
    due_at: instant('due_at'),
    /** The event from which the group waits or counts. */
    event_id: uuid('event_id'),
    updated_at: updatedAt(),
  },
  (t) => [
    primaryKey({ columns: [t.trigger_id, t.group_key] }),
    index('trigger_groups_due').on(t.due_at).where(sql`${t.due_at} is not null`),
  ],
);

/** Matches of events with triggers. The rows make the evaluation of an event idempotent. */
export const triggerMatches = pgTable(
  'trigger_matches',
  {
    event_id: uuid('event_id')
      .notNull()
      .references(() => events.id, { onDelete: 'cascade' }),
    trigger_id: uuid('trigger_id')
      .notNull()
      .references(() => triggers.id, { onDelete: 'cascade' }),
    fired: boolean('fired').notNull(),
    case_id: uuid('case_id').references(() => cases.id),
    created_at: createdAt(),
  },
  (t) => [
    primaryKey({ columns: [t.event_id, t.trigger_id] }),
    index('trigger_matches_trigger').on(t.trigger_id, t.created_at),
  ],
);

/** A problem, from its first firing until it is resolved. There is at most one live case per deduplication key. */
export const cases = pgTable(
  'cases',
  {
    id: id(),
    account_id: accountId(),
    number: integer('number').notNull(),
    title: text('title').notNull(),
    status: text('status', { enum: ['open', 'acknowledged', 'resolved', 'suppressed'] }).notNull(),
    severity: text('severity', { enum: SEVERITIES }).notNull(),
    trigger_id: uuid('trigger_id')
      .notNull()
      .references(() => triggers.id),
    dedup_key: text('dedup_key').notNull(),
    group: jsonb('group').$type<Record<string, unknown>>().notNull(),
    connection_id: uuid('connection_id'),
    account_connector_id: uuid('account_connector_id'),
    event_count: integer('event_count').notNull().default(1),
    first_event_at: instant('first_event_at').notNull(),
    last_event_at: instant('last_event_at').notNull(),
    opened_at: instant('opened_at').notNull(),
    acknowledged_at: instant('acknowledged_at'),
    acknowledged_by: uuid('acknowledged_by').references(() => users.id),
    resolved_at: instant('resolved_at'),
    resolved_by: uuid('resolved_by').references(() => users.id),
    resolution: text('resolution', { enum: ['manual', 'auto', 'trigger_deleted'] }),
    reopened_count: integer('reopened_count').notNull().default(0),
    last_error: text('last_error'),
    latest_event_ids: uuid('latest_event_ids').array().notNull().default([]),
    /** Threads of chat messages, by account connector and channel. */
    chat_threads: jsonb('chat_threads').$type<Record<string, string>>().notNull().default({}),
    created_at: createdAt(),
    updated_at: updatedAt(),
  },
  (t) => [
    ...knownValues('cases', t),
    check(
      'cases_resolved',
      sql`(${t.status} = 'resolved') = (${t.resolved_at} is not null)
        and (${t.status} = 'resolved') = (${t.resolution} is not null)`,
    ),
    check('cases_acknowledged', sql`${t.status} <> 'acknowledged' or ${t.acknowledged_at} is not null`),
    check('cases_counts', sql`${t.number} >= 1 and ${t.event_count} >= 1 and ${t.reopened_count} >= 0`),
    check('cases_events', sql`${t.first_event_at} <= ${t.last_event_at}`),
    uniqueIndex('cases_number').on(t.account_id, t.number),
    uniqueIndex('cases_one_live')
      .on(t.account_id, t.dedup_key)
      .where(sql`${t.status} in ('open', 'acknowledged', 'suppressed')`),
    index('cases_list').on(t.account_id, t.created_at, t.id),
    index('cases_status').on(t.account_id, t.status, t.created_at, t.id),
    index('cases_trigger').on(t.trigger_id, t.status),
  ],
);

/** What happened to a case, and what caused it. */
export const caseTimeline = pgTable(
  'case_timeline',
  {
    id: id(),
    case_id: uuid('case_id')
      .notNull()
      .references(() => cases.id, { onDelete: 'cascade' }),
    at: instant('at').notNull().default(sql`clock_timestamp()`),
    type: text('type', { enum: CASE_ENTRIES }).notNull(),
    actor: jsonb('actor').$type<Record<string, unknown>>(),
    note: text('note'),
  },
  (t) => [...knownValues('case_timeline', t), index('case_timeline_case').on(t.case_id, t.id)],
);

/** One action of one firing, delivered at least once. Receivers deduplicate by `id`. */
export const deliveries = pgTable(
  'deliveries',
  {
    id: id(),
    account_id: accountId(),
    event_id: uuid('event_id')
      .notNull()
      .references(() => events.id, { onDelete: 'cascade' }),
    trigger_id: uuid('trigger_id')
      .notNull()
      .references(() => triggers.id, { onDelete: 'cascade' }),
    case_id: uuid('case_id').references(() => cases.id),
    action_index: integer('action_index').notNull(),
    type: text('type', { enum: ACTION_TYPES }).notNull(),
    /** What the case did: opened, reopened, raised, repeated, summary or resolved; `fired` without a case. */
    reason: text('reason', { enum: DELIVERY_REASONS }).notNull(),
    status: text('status', { enum: ['pending', 'retrying', 'delivered', 'failed', 'suppressed', 'cancelled'] })
      .notNull()
      .default('pending'),
    attempts: integer('attempts').notNull().default(0),
    /** Attempts in a row that recorded no end, because their worker died. The one under way counts. */
    unfinished_attempts: integer('unfinished_attempts').notNull().default(0),
    last_attempt_at: instant('last_attempt_at'),
    next_attempt_at: instant('next_attempt_at'),
    delivered_at: instant('delivered_at'),
    /** Recipients of an email who have it already, while others wait for the end of their quiet hours. */
    delivered_to: text('delivered_to').array().notNull().default([]),
    /** The end of the quiet hours for which it waits. */
    held_until: instant('held_until'),
    error: text('error'),
    created_at: createdAt(),
  },
  (t) => [
    ...knownValues('deliveries', t),
    check('deliveries_delivered', sql`(${t.delivered_at} is not null) = (${t.status} = 'delivered')`),
    check('deliveries_counts', sql`${t.action_index} >= 0 and ${t.attempts} >= 0`),
    uniqueIndex('deliveries_action').on(t.event_id, t.trigger_id, t.action_index),
    index('deliveries_age').on(t.created_at).where(sql`${t.status} not in ('pending', 'retrying')`),
    index('deliveries_case').on(t.case_id, t.id),
    index('deliveries_waiting').on(t.next_attempt_at).where(sql`${t.status} in ('pending', 'retrying')`),
    index('deliveries_trigger').on(t.trigger_id).where(sql`${t.status} in ('pending', 'retrying')`),
  ],
);

/** When messages to people are held back, and when the daily digest is due. Without a row, everything is sent at once. */
export const notificationSettings = pgTable(
  'notification_settings',
  {
    account_id: accountId().primaryKey(),
    /** The zone of all times of day here. Null: that of the account. */
    timezone: text('timezone'),
    quiet_from: text('quiet_from'),
    quiet_until: text('quiet_until'),
    /** Messages of this severity and above are sent during quiet hours, too. Null: none. */
    urgent_severity: text('urgent_severity', { enum: SEVERITIES }).default('critical'),
    digest_at: text('digest_at'),
    next_digest_at: instant('next_digest_at'),
    updated_at: updatedAt(),
  },
  (t) => [
    ...knownValues('notification_settings', t),
    check('notification_settings_quiet', sql`(${t.quiet_from} is null) = (${t.quiet_until} is null)`),
    check('notification_settings_digest', sql`(${t.digest_at} is null) = (${t.next_digest_at} is null)`),
    index('notification_settings_digest_due').on(t.next_digest_at).where(sql`${t.next_digest_at} is not null`),
  ],
);

/** When the next message may be sent to a channel. All processes together send at most one per second. */
export const chatChannelSlots = pgTable(
  'chat_channel_slots',
  {
    account_connector_id: uuid('account_connector_id')
      .notNull()
      .references(() => accountConnectors.id),
    channel_id: text('channel_id').notNull(),
    next_at: instant('next_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.account_connector_id, t.channel_id] })],
);
