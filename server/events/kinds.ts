export type EventCategory =
  | 'connection'
  | 'run'
  | 'stream'
  | 'account_connector'
  | 'user'
  | 'role'
  | 'billing'
  | 'automation'
  | 'schema'
  | 'api_key';
export type EventSeverity = 'critical' | 'high' | 'warning' | 'info' | 'low';

const kind = (category: EventCategory, severity: EventSeverity = 'info') => ({ category, severity });

/** Every kind of event, with its category and severity. */
export const EVENT_KINDS = {
  connection_created: kind('connection'),
  connection_updated: kind('connection'),
  connection_deleted: kind('connection', 'warning'),
  connection_paused: kind('connection'),
  connection_resumed: kind('connection'),
  connection_auto_disabled: kind('connection', 'critical'),
  connection_locked: kind('connection', 'high'),
  connection_unlocked: kind('connection'),
  connection_run_queued: kind('run', 'low'),
  connection_run_started: kind('run', 'low'),
  connection_run_retrying: kind('run', 'warning'),
  connection_run_skipped: kind('run', 'warning'),
  connection_run_stopped: kind('run', 'warning'),
  connection_succeeded: kind('run'),
  connection_failed: kind('run', 'high'),
  connection_partially_failed: kind('run', 'high'),
  stream_run_succeeded: kind('stream', 'low'),
  stream_run_failed: kind('stream', 'warning'),
  stream_run_rate_limited: kind('stream', 'low'),
  stream_run_stopped: kind('stream', 'low'),
  custom_run_planned: kind('run', 'low'),
  custom_run_launched: kind('run'),
  custom_run_completed: kind('run'),
  catalog_refreshed: kind('schema', 'low'),
  schema_changed: kind('schema', 'warning'),
  schema_change_breaking: kind('schema', 'critical'),
  account_connector_created: kind('account_connector'),
  account_connector_updated: kind('account_connector'),
  account_connector_deleted: kind('account_connector', 'warning'),
  account_connector_authenticated: kind('account_connector'),
  account_connector_broken: kind('account_connector', 'high'),
  account_connector_reauth_required: kind('account_connector', 'high'),
  credentials_expiring: kind('account_connector', 'warning'),
  metadata_export_succeeded: kind('account_connector', 'low'),
  metadata_export_failed: kind('account_connector', 'warning'),
  user_added: kind('user'),
  user_updated: kind('user', 'low'),
  user_disabled: kind('user', 'warning'),
  user_enabled: kind('user'),
  user_removed: kind('user', 'warning'),
  user_logged_in: kind('user', 'low'),
  role_created: kind('role'),
  role_updated: kind('role'),
  role_deleted: kind('role', 'warning'),
  role_assigned: kind('role'),
  role_unassigned: kind('role'),
  api_key_created: kind('api_key'),
  api_key_rotated: kind('api_key'),
  api_key_expiring: kind('api_key', 'warning'),
  api_key_expired: kind('api_key', 'high'),
  api_key_revoked: kind('api_key', 'warning'),
  plan_limit_warning: kind('billing', 'warning'),
  plan_limit_reached: kind('billing', 'high'),
  plan_limit_cleared: kind('billing'),
  plan_changed: kind('billing'),
  credits_exhausted: kind('billing', 'critical'),
  free_period_ending: kind('billing'),
  trigger_created: kind('automation'),
  trigger_updated: kind('automation'),
  trigger_deleted: kind('automation'),
  trigger_fired: kind('automation'),
  trigger_auto_disabled: kind('automation', 'high'),
  action_failed: kind('automation', 'warning'),
  case_opened: kind('automation'),
  case_acknowledged: kind('automation', 'low'),
  case_resolved: kind('automation', 'low'),
  case_reopened: kind('automation'),
  case_suppressed: kind('automation', 'low'),
  data_delayed: kind('run', 'warning'),
  change_log_lagging: kind('stream', 'warning'),
  change_log_not_released: kind('stream', 'warning'),
} as const;

export type EventKind = keyof typeof EVENT_KINDS;
