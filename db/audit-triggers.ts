import { getTableColumns, getTableName } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type postgres from 'postgres';
import {
  accountConnectors,
  accounts,
  apiKeys,
  appliedFiles,
  cases,
  catalogStreams,
  connectionStreams,
  connections,
  customConnectors,
  notificationSettings,
  roles,
  savedViews,
  schemaChanges,
  triggers,
  userIdentities,
  userRoles,
  users,
} from './schema/index.ts';

/** A table whose changes the audit log records. */
interface AuditedTable {
  table: PgTable;
  /** What the log calls a row. */
  type: string;
  /** Columns of the row's id and name. Default: `id` and `name`. */
  id?: string;
  name?: string;
  secrets?: string[];
  /** Columns that the service keeps up to date by itself. All others are recorded. */
  bookkeeping?: string[];
  /** Columns that checkpoints change all the time. Only changes by a call are recorded. */
  by_calls?: string[];
  /** Default: all three. */
  operations?: ('INSERT' | 'UPDATE' | 'DELETE')[];
}

/** Every entry has them, or they follow from the entry. */
const NEVER = ['id', 'account_id', 'created_at', 'updated_at', 'revision', 'created_by', 'updated_by'];

export const AUDITED: readonly AuditedTable[] = [
  { table: accounts, type: 'account', bookkeeping: ['case_counter', 'periods_from'] },
  {
    table: users,
    type: 'user',
    name: 'email',
    secrets: ['invitation_hash'],
    bookkeeping: ['last_login_at', 'last_api_request_at', 'avatar_key', 'invited_by', 'invited_at'],
  },
  { table: userIdentities, type: 'user_identity', name: 'subject', bookkeeping: ['last_sign_in_at'] },
  { table: roles, type: 'role' },
  { table: userRoles, type: 'user_role', id: 'user_id', name: 'role_id' },
  {
    table: apiKeys,
    type: 'api_key',
    name: 'prefix',
    secrets: ['hash'],
    bookkeeping: ['last_used_at', 'announced_days'],
  },
  {
    table: connections,
    type: 'connection',
    bookkeeping: [
      'next_run_at',
      'next_verification_at',
      'ticking_since',
      'delay_told_at',
      'schema_change_status',
      'catalog_refreshed_at',
      'run_counter',
      'consecutive_failures',
      'last_succeeded_at',
      'last_failed_at',
    ],
  },
  {
    table: connectionStreams,
    type: 'stream',
    by_calls: ['state'],
    bookkeeping: [
      'state_version',
      'committed_version',
      'cursor_updated_at',
      'loaded_columns',
      'loaded_details',
      'row_count_last_run',
      'fresh_at',
      'written_table',
    ],
  },
  {
    table: accountConnectors,
    type: 'account_connector',
    secrets: ['secrets'],
    bookkeeping: [
      'last_test',
      'last_tested_at',
      'announced_days',
      'catalog_status',
      'catalog_refreshed_at',
      'failure_streak',
      'retest_at',
      'retests',
      'free_end_told_at',
    ],
  },
  {
    table: customConnectors,
    type: 'custom_connector',
    // `digest` and `version` are recorded. What they stand for has several megabytes.
    bookkeeping: ['manifest', 'components', 'files', 'outline', 'etag', 'icon'],
  },
  {
    table: catalogStreams,
    type: 'catalog_stream',
    bookkeeping: [
      'account_connector_id',
      'namespace',
      'name',
      'definition',
      'change_status',
      'discovered_at',
      'removed_at',
    ],
    operations: ['UPDATE'],
  },
  { table: schemaChanges, type: 'schema_change', name: 'stream_name', operations: ['DELETE'] },
  {
    table: appliedFiles,
    type: 'applied_file',
    name: 'file',
    bookkeeping: ['items', 'differences', 'checked_at'],
  },
  {
    table: triggers,
    type: 'trigger',
    secrets: ['secrets'],
    bookkeeping: [
      'normalized_rule',
      'matched_kinds',
      'state',
      'last_evaluated_at',
      'last_fired_at',
      'fire_count',
      'error_count',
      'consecutive_errors',
      'last_error',
    ],
  },
  {
    table: notificationSettings,
    type: 'notification_settings',
    id: 'account_id',
    name: 'account_id',
    bookkeeping: ['next_digest_at'],
  },
  { table: savedViews, type: 'saved_view' },
  {
    table: cases,
    type: 'case',
    name: 'title',
    bookkeeping: [
      'number',
      'trigger_id',
      'dedup_key',
      'group',
      'connection_id',
      'account_connector_id',
      'event_count',
      'first_event_at',
      'last_event_at',
      'opened_at',
      'reopened_count',
      'last_error',
      'latest_event_ids',
      'chat_threads',
    ],
    operations: ['UPDATE'],
  },
];

/** The recorded columns of an audited table. */
export function auditedColumns({ table, bookkeeping = [], by_calls = [] }: AuditedTable): string[] {
  const left_out = [...NEVER, ...bookkeeping, ...by_calls];
  const names = Object.values(getTableColumns(table)).map((column) => column.name);
  return names.filter((name) => !left_out.includes(name));
}

/** Derived from the schema, so that a new column is recorded unless it is declared as bookkeeping. */
function* triggersOf(audited: AuditedTable): Generator<{ name: string; table: string; text: string }> {
  const { type, id = 'id', name = 'name', secrets = [], by_calls = [], operations } = audited;
  const table = getTableName(audited.table);
  const recorded = auditedColumns(audited);
  const trigger = (suffix: string, when: string, columns: string[]) => {
    const parameters = [type, id, name, `{${columns.join()}}`, `{${secrets.join()}}`].map((text) => `'${text}'`);
    const trigger_name = `${table}_audited_${suffix}`;
    const text = `create or replace trigger "${trigger_name}" after ${when} execute function audit_change(${parameters.join(', ')})`;
    return { name: trigger_name, table, text };
  };
  const list = (columns: string[]) => columns.map((column) => `"${column}"`).join(', ');
  for (const operation of operations ?? ['INSERT', 'UPDATE', 'DELETE']) {
    const when =
      operation === 'UPDATE'
        ? `update of ${list(recorded)} on "${table}" for each row when (old.* is distinct from new.*)`
        : `${operation.toLowerCase()} on "${table}" referencing ${operation === 'INSERT' ? 'new' : 'old'} table as changed_rows for each statement`;
    yield trigger(operation.toLowerCase(), when, recorded);
  }
  for (const column of by_calls) {
    const when = `update of "${column}" on "${table}" for each row
      when (old."${column}" is distinct from new."${column}" and current_setting('audit.call', true) <> '')`;
    yield trigger(column, when, [column]);
  }
}

/** Creates the triggers that differ from those in the database: creating one waits for the transactions on its table. */
export async function storeAuditTriggers(client: postgres.Sql): Promise<void> {
  const stored = await client<{ name: string; text: string }[]>`
    select t.tgname as name, obj_description(t.oid, 'pg_trigger') as text from pg_trigger t
    where t.tgfoid = 'audit_change'::regproc`;
  const known = new Map(stored.map(({ name, text }) => [name, text]));
  for (const { name, table, text } of AUDITED.flatMap((one) => [...triggersOf(one)])) {
    if (known.get(name) === text) continue;
    await client.unsafe(text);
    await client.unsafe(`comment on trigger "${name}" on "${table}" is '${text.replaceAll("'", "''")}'`);
  }
}
