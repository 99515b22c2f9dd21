import type { EventRow } from '../../db/schema/index.ts';
import { EVENT_KINDS, type EventKind } from './kinds.ts';

/** Instants are text, as on the wire: `timestamp(occurred_at)` makes them comparable. */
export type VariableType = 'string' | 'int' | 'double' | 'bool' | 'list<string>';

const typed = <Name extends string>(type: VariableType, ...names: Name[]) =>
  Object.fromEntries(names.map((name) => [name, type])) as Record<Name, VariableType>;

/** Every variable that a rule may name. A name has one type, whatever the kind of the event. */
export const VARIABLES: Readonly<Record<string, VariableType>> = {
  ...typed(
    'string',
    'event',
    'category',
    'severity',
    'occurred_at',
    'account_id',
    'actor_type',
    'actor_id',
    'actor_name',
  ),
  ...typed('string', 'connection_id', 'connection_name', 'kind', 'status', 'status_reason', 'source_id', 'source_name'),
  ...typed('string', 'source_connector_name', 'destination_id', 'destination_name', 'destination_connector_name'),
  ...typed('list<string>', 'tags', 'changed_fields', 'role_names'),
  ...typed('bool', 'notify_on_failure', 'retryable', 'breaking', 'found_by_run'),
  ...typed('string', 'connection_run_id', 'run_type', 'trigger_type', 'skip_reason', 'stopped_by'),
  ...typed('int', 'run_number', 'attempt', 'retry_count', 'duration_ms', 'rows_read', 'rows_loaded', 'rows_rejected'),
  ...typed('int', 'bytes_loaded', 'streams_total', 'streams_failed', 'credits_used'),
  ...typed('string', 'error_code', 'error_type', 'error_origin', 'error_message', 'window_start', 'window_end'),
  ...typed('double', 'duration_ms_mean', 'duration_ms_std', 'duration_ms_zscore'),
  ...typed('double', 'rows_loaded_mean', 'rows_loaded_std', 'rows_loaded_zscore'),
  ...typed('string', 'stream_run_id', 'stream_id', 'stream_name', 'namespace', 'rate_limited_until'),
  ...typed('string', 'plan_id', 'start_date', 'end_date'),
  ...typed('int', 'total_chunks', 'failed_chunks'),
  ...typed('list<string>', 'streams_added', 'streams_removed', 'streams_updated', 'streams_unselected'),
  ...typed('list<string>', 'fields_added', 'fields_removed', 'fields_updated'),
  ...typed('string', 'account_connector_id', 'account_connector_name', 'connector_type', 'connector_name'),
  ...typed('int', 'days_remaining', 'minutes_late', 'case_number', 'skipped_runs'),
  ...typed('string', 'task_id', 'format', 'url_expires_at'),
  ...typed('string', 'user_id', 'email', 'full_name', 'role_id', 'role_name'),
  ...typed('string', 'limit', 'plan_name'),
  ...typed('int', 'used', 'limit_value'),
  ...typed('double', 'percent'),
  ...typed('string', 'verification_id'),
  ...typed('list<string>', 'streams_different'),
  ...typed('int', 'rows_different'),
  ...typed('string', 'digest', 'digest_from', 'digest_until', 'file', 'owner'),
  ...typed('int', 'runs_total', 'runs_failed', 'open_cases', 'changes'),
  ...typed('list<string>', 'failed_connections', 'late_connections', 'open_case_titles', 'changed_items'),
  ...typed('string', 'trigger_id', 'trigger_name', 'action_type', 'case_id'),
};

/** Null until the connection has enough runs: a rule that fails on it is not necessarily wrong. */
export const isStatistic = (name: string) => /_(mean|std|zscore)$/.test(name);

/** Splits words: with one name per line the lists would be a page long. */
const names = (words: string) => words.split(' ');

const BASE = ['event', 'category', 'severity', 'occurred_at', 'account_id', 'actor_type', 'actor_id', 'actor_name'];
const CONNECTION = [
  ...names('connection_id connection_name kind status status_reason source_id source_name tags'),
  ...names('source_connector_name destination_id destination_name destination_connector_name changed_fields'),
  'notify_on_failure',
];
const RUN = [
  ...CONNECTION,
  ...names('connection_run_id run_number run_type trigger_type attempt skip_reason stopped_by plan_id'),
  ...names('retry_count duration_ms window_start window_end credits_used'),
];
const ROWS = ['rows_read', 'rows_loaded', 'rows_rejected', 'bytes_loaded', 'rows_loaded_zscore'];
const ERROR = ['error_code', 'error_type', 'error_origin', 'error_message', 'retryable'];
const ENDED_RUN = [
  ...RUN,
  ...ROWS,
  ...ERROR,
  ...names('streams_total streams_failed duration_ms_mean duration_ms_std duration_ms_zscore'),
  ...names('rows_loaded_mean rows_loaded_std'),
];
const STREAM = [
  ...RUN,
  ...ROWS,
  ...ERROR,
  'stream_run_id',
  'stream_id',
  'stream_name',
  'namespace',
  'rate_limited_until',
];
const CUSTOM_RUN = [...CONNECTION, 'plan_id', 'total_chunks', 'failed_chunks', 'start_date', 'end_date'];
const ACCOUNT_CONNECTOR = [
  ...names('account_connector_id account_connector_name connector_type connector_name status status_reason'),
  ...names('days_remaining changed_fields skipped_runs'),
];
const SCHEMA = [
  ...new Set([...CONNECTION, ...ACCOUNT_CONNECTOR]),
  ...names('streams_added streams_removed streams_updated fields_added fields_removed fields_updated'),
  ...names('streams_unselected breaking task_id error_code found_by_run'),
];
const VERIFICATION = names(
  'connection_run_id verification_id streams_total streams_failed streams_different rows_different error_code error_message',
);
const PLAN = ['limit', 'used', 'limit_value', 'percent', 'plan_name'];
const USER = ['user_id', 'email', 'full_name', 'role_names', 'changed_fields'];
const TRIGGER = [
  'trigger_id',
  'trigger_name',
  'action_type',
  'error_message',
  'case_id',
  'connection_id',
  'changed_fields',
];

const DIGEST = names(
  'digest digest_from digest_until runs_total runs_failed rows_loaded open_cases failed_connections late_connections open_case_titles',
);

/** By the prefix of the event kind; the first match counts. */
const FAMILIES: [prefix: RegExp, names: readonly string[]][] = [
  [/^connection_(succeeded|failed|partially_failed|run_stopped)$/, ENDED_RUN],
  [/^connection_run_/, [...RUN, ...ERROR]],
  [/^connection_/, CONNECTION],
  [/^stream_run_/, STREAM],
  [/^custom_run_/, CUSTOM_RUN],
  [/^(catalog_|schema_)/, SCHEMA],
  [/^(account_connector_|credentials_)/, [...ACCOUNT_CONNECTOR, 'connection_id']],
  [/^metadata_export_/, [...ACCOUNT_CONNECTOR, 'task_id', 'format', 'url_expires_at', 'error_code', 'error_message']],
  [/^user_/, USER],
  [/^role_/, ['role_id', 'role_name', 'user_id', 'email', 'changed_fields']],
  [/^api_key_/, ['user_id', 'email', 'days_remaining']],
  [/^(plan_|credits_)/, PLAN],
  [/^free_period_/, [...PLAN, ...ACCOUNT_CONNECTOR]],
  [/^(trigger_|action_)/, TRIGGER],
  [/^case_/, [...TRIGGER, 'case_number']],
  [/^change_log_/, [...CONNECTION, ...names('stream_id stream_name namespace lag_bytes error_message')]],
  [/^destination_/, [...CONNECTION, ...names('stream_id stream_name namespace cursor_before cursor_now')]],
  [/^verification_/, [...CONNECTION, ...VERIFICATION]],
  [/^daily_digest$/, DIGEST],
  [/^configuration_/, ['file', 'owner', 'changes', 'changed_items']],
  [/^data_delayed$/, [...CONNECTION, 'minutes_late']],
];

/** The variables that events of each kind carry. */
export const VARIABLES_OF: Readonly<Record<EventKind, ReadonlySet<string>>> = Object.fromEntries(
  Object.keys(EVENT_KINDS).map((kind) => [
    kind,
    new Set([...BASE, ...(FAMILIES.find(([prefix]) => prefix.test(kind))?.[1] ?? [])]),
  ]),
) as unknown as Record<EventKind, ReadonlySet<string>>;

export const isEventKind = (name: string): name is EventKind => Object.hasOwn(EVENT_KINDS, name);

type EventWithPayload = Omit<EventRow, 'payload' | 'evaluation_attempts'> & { payload: Record<string, unknown> };

/** The variables of an event as JSON, for templates, groups and the rule tester. */
export function eventFacts(event: EventWithPayload): Record<string, unknown> {
  const { connection_id, connection_run_id, stream_run_id, account_connector_id, user_id } = event;
  const references = { connection_id, connection_run_id, stream_run_id, account_connector_id, user_id };
  const { event: kind, category, severity, occurred_at, account_id, actor } = event;
  return {
    ...references,
    ...event.payload,
    event: kind,
    category,
    severity,
    occurred_at,
    account_id,
    actor_type: actor.type,
    actor_id: actor.id,
    actor_name: actor.name,
  };
}

/** The `payload` of the API: every variable of the event kind, null if absent, and any other stored key. */
export function eventPayload(event: EventWithPayload): Record<string, unknown> {
  const facts = eventFacts(event);
  const carried = isEventKind(event.event) ? [...VARIABLES_OF[event.event]] : [];
  return { ...Object.fromEntries(carried.map((name) => [name, facts[name] ?? null])), ...event.payload };
}
