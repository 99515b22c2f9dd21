import { sql } from 'drizzle-orm';
import {
  bigint,
  check,
  customType,
  index,
  integer,
  jsonb,
  pgTable,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import { knownValues } from './checks.ts';
import { AUDIT_ACTOR_TYPES, AUDIT_KINDS, AUDIT_OPERATIONS, AUDIT_OUTCOMES } from './closed-sets.ts';
import { instant } from './columns.ts';

/**
 * The audit log: calls that change something, changed rows, sign-ins, refusals, downloads and uses of secrets. Triggers
 * refuse UPDATE, DELETE and TRUNCATE. Ids are without foreign keys: entries outlive what they report.
 */
export const auditEvents = pgTable(
  'audit_events',
  {
    seq: bigint('seq', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    /** Null for calls whose account is unknown, such as those with an unknown key. */
    account_id: uuid('account_id'),
    occurred_at: instant('occurred_at').notNull().default(sql`clock_timestamp()`),
    kind: text('kind', { enum: AUDIT_KINDS }).notNull(),
    /** The procedure, such as `connections.update`; `system` for changes of the service itself. */
    action: text('action').notNull(),
    outcome: text('outcome', { enum: AUDIT_OUTCOMES }).notNull().default('succeeded'),
    /** The error code of a refusal. */
    code: text('code'),
    actor_type: text('actor_type', { enum: AUDIT_ACTOR_TYPES }).notNull(),
    actor_id: uuid('actor_id'),
    actor_name: text('actor_name'),
    api_key_id: uuid('api_key_id'),
    session_id: uuid('session_id'),
    address: text('address'),
    user_agent: text('user_agent'),
    request_id: text('request_id'),
    resource_type: text('resource_type'),
    resource_id: text('resource_id'),
    resource_name: text('resource_name'),
    /** What a change did to its row. */
    operation: text('operation', { enum: AUDIT_OPERATIONS }),
    /** The values of the row that changed; secrets as `set`. */
    before: jsonb('before').$type<Record<string, unknown>>(),
    /** As `before`; a changed secret as `changed`. */
    after: jsonb('after').$type<Record<string, unknown>>(),
    /** Ids in the path of a call; host and purpose of the use of a secret. */
    details: jsonb('details').$type<Record<string, unknown>>(),
    /** How often it occurred: repeated refusals share an entry. */
    count: integer('count').notNull().default(1),
  },
  (t) => [
    ...knownValues('audit_events', t),
    check('audit_events_count', sql`${t.count} >= 1`),
    check('audit_events_change', sql`(${t.kind} = 'change') = (${t.operation} is not null)`),
    check('audit_events_refusal', sql`(${t.outcome} = 'refused') = (${t.code} is not null)`),
    index('audit_events_list').on(t.account_id, t.occurred_at, t.seq),
    index('audit_events_resource').on(t.resource_id, t.occurred_at).where(sql`${t.resource_id} is not null`),
  ],
);

/** Entries of the audit log that no seal covers yet. A trigger adds them, the sealer removes them. */
export const auditUnsealed = pgTable('audit_unsealed', {
  seq: bigint('seq', { mode: 'number' }).primaryKey(),
});

/** Sets of `seq`. Numbers of transactions that were rolled back are missing. */
const multirange = customType<{ data: string }>({ dataType: () => 'int8multirange' });

/**
 * The hash chains over the audit log, one per account. Each seal covers the entries of its account that were committed
 * since the seal before.
 */
export const auditSeals = pgTable(
  'audit_seals',
  {
    /** From 1, without gaps, over all chains. */
    id: bigint('id', { mode: 'number' }).primaryKey(),
    /** Id of the account; `none` for entries without one; `installation` for seals over the entries of all accounts. */
    chain: text('chain').notNull().default('installation'),
    /** Id of the seal before in the chain; null for the first one and in the chain `installation`. */
    previous: bigint('previous', { mode: 'number' }),
    first_seq: bigint('first_seq', { mode: 'number' }).notNull(),
    last_seq: bigint('last_seq', { mode: 'number' }).notNull(),
    seqs: multirange('seqs').notNull(),
    /** SHA-256 over the hash of the seal before and the entries, hexadecimal. */
    hash: text('hash').notNull(),
    /** HMAC-SHA256 of id, chain, previous seal and hash, with a key derived from SECRET_KEY. */
    mac: text('mac').notNull(),
    sealed_at: instant('sealed_at').notNull().default(sql`clock_timestamp()`),
  },
  (t) => [
    check('audit_seals_range', sql`${t.id} >= 1 and ${t.first_seq} <= ${t.last_seq}`),
    uniqueIndex('audit_seals_hash').on(t.chain, t.hash),
    index('audit_seals_chain').on(t.chain, t.id),
  ],
);
