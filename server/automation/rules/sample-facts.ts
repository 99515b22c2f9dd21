import { EVENT_KINDS, type EventKind } from '../../events/kinds.ts';
import { VARIABLES, VARIABLES_OF, type VariableType } from '../../events/variables.ts';

const BY_TYPE: Record<VariableType, unknown> = {
  string: 'sample',
  int: 1,
  double: 1.5,
  bool: true,
  'list<string>': ['sample'],
};

const BY_NAME: Record<string, unknown> = {
  occurred_at: '2026-01-31T23:59:59.123Z',
  actor_type: 'system',
  actor_id: null,
  actor_name: null,
  connection_name: 'Orders to warehouse',
  kind: 'elt',
  status: 'active',
  status_reason: null,
  source_name: 'Orders',
  source_connector_name: 'postgres',
  destination_name: 'Warehouse',
  destination_connector_name: 'postgres',
  notify_on_failure: true,
  run_type: 'plain',
  trigger_type: 'schedule',
  skip_reason: null,
  stopped_by: null,
  duration_ms: 42_000,
  duration_ms_mean: 40_000.5,
  duration_ms_std: 1500.5,
  duration_ms_zscore: 1.33,
  rows_read: 1000,
  rows_loaded: 1000,
  rows_rejected: 0,
  rows_loaded_mean: 990.5,
  rows_loaded_std: 20.5,
  rows_loaded_zscore: 0.46,
  bytes_loaded: 65_536,
  error_code: 'connection_refused',
  error_type: 'transient_error',
  error_origin: 'source',
  error_message: 'The source refused the connection',
  window_start: null,
  window_end: null,
  connector_type: 'source',
  connector_name: 'postgres',
  email: 'someone@example.com',
  full_name: 'Someone',
  role_names: ['Viewer'],
  limit: 'max_connections',
  used: 9,
  limit_value: 10,
  percent: 90,
  plan_name: 'pro',
  days_remaining: 7,
  digest: '24 runs, 2 failed\nFailed: Orders to warehouse',
  digest_from: '2026-01-30T08:00:00.000Z',
  digest_until: '2026-01-31T08:00:00.000Z',
  file: 'pipelines.yaml',
  owner: null,
};

const OF_SUCCESS: Record<string, unknown> = {
  error_code: null,
  error_type: null,
  error_origin: null,
  error_message: null,
  retryable: null,
  retry_count: 0,
  streams_failed: 0,
};

/** Plausible facts for an event of this kind. */
export function sampleFacts(kind: EventKind): Record<string, unknown> {
  const facts: Record<string, unknown> = {};
  for (const name of VARIABLES_OF[kind]) facts[name] = name in BY_NAME ? BY_NAME[name] : sampleOf(name);
  return { ...facts, ...(kind.endsWith('_succeeded') && pick(OF_SUCCESS, facts)), event: kind, ...EVENT_KINDS[kind] };
}

const sampleOf = (name: string) =>
  name.endsWith('_id') ? '00000000-0000-7000-8000-000000000000' : BY_TYPE[VARIABLES[name]!];

const pick = (from: Record<string, unknown>, names: object) =>
  Object.fromEntries(Object.entries(from).filter(([name]) => name in names));
