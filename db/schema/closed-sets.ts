// Lists that the code and the control database share. `knownValues` (checks.ts) turns each into a CHECK constraint.

export const CONNECTOR_TYPES = ['source', 'destination'] as const;
export const SYNC_MODES = ['full_refresh', 'incremental'] as const;
export const DESTINATION_SYNC_MODES = ['append', 'overwrite', 'append_dedup', 'update', 'soft_delete'] as const;
/** What an application is asked to do with a row. */
export const SENT_OPERATIONS = ['insert', 'update', 'delete'] as const;
/** In ascending order. */
export const SEVERITIES = ['low', 'info', 'warning', 'high', 'critical'] as const;
export const EVENT_CATEGORIES = [
  'connection',
  'run',
  'stream',
  'account_connector',
  'user',
  'role',
  'billing',
  'automation',
  'schema',
  'api_key',
] as const;
export const ACTOR_TYPES = ['user', 'schedule', 'system', 'automation'] as const;
export const AUDIT_KINDS = ['call', 'change', 'sign_in', 'sign_out', 'refusal', 'download', 'secret_use'] as const;
export const AUDIT_OPERATIONS = ['create', 'update', 'delete'] as const;
export const AUDIT_OUTCOMES = ['succeeded', 'refused'] as const;
/** `anonymous`: a call without a valid key or session. */
export const AUDIT_ACTOR_TYPES = [...ACTOR_TYPES, 'anonymous'] as const;
/** Why the secrets of an account connector are used. */
export const SECRET_PURPOSES = [
  'test',
  'discovery',
  'possible_values',
  'preview',
  'chat_channels',
  'chat_message',
  'metadata_export',
  'change_log',
  'verification',
  'webhook',
  'consent',
  'run',
] as const;
export const AUTH_METHODS = ['none', 'api_key', 'basic', 'oauth2', 'key_pair', 'ssh_key', 'service_account'] as const;
export const PLAN_IDS = ['self_hosted', 'free', 'starter', 'pro', 'enterprise'] as const;
/** The limits of a billing plan on numbers of objects. */
export const COUNTED_LIMITS = [
  'max_connections',
  'max_sources',
  'max_destinations',
  'max_users',
  'max_triggers',
] as const;
/** The limits that are announced when they are almost reached. */
export const NOTICED_LIMITS = [...COUNTED_LIMITS, 'credits_included'] as const;
export const ACTION_TYPES = [
  'send_chat_message',
  'send_email',
  'call_webhook',
  'pause_connection',
  'run_connection',
  'rerun_run',
] as const;
export const DELIVERY_REASONS = [
  'fired',
  'opened',
  'reopened',
  'raised',
  'joined',
  'repeated',
  'summary',
  'resolved',
] as const;
/** What the timeline of a case records. */
export const CASE_ENTRIES = [
  'opened',
  'reopened',
  'raised',
  'acknowledged',
  'suppressed',
  'resolved',
  'action_failed',
] as const;

export const RUN_STATUSES = [
  'queued',
  'running',
  'retrying',
  'stopping',
  'succeeded',
  'partially_succeeded',
  'failed',
  'stopped',
  'skipped',
] as const;

/** Run states that still change. */
export const LIVE_RUN: (typeof RUN_STATUSES)[number][] = ['queued', 'running', 'retrying', 'stopping'];

export const STREAM_RUN_STATUSES = [
  'pending',
  'running',
  'rate_limited',
  'retrying',
  'succeeded',
  'failed',
  'stopped',
  'skipped',
] as const;

/** Stream run states in which a worker holds the stream. */
export const HELD_STREAM_RUN: (typeof STREAM_RUN_STATUSES)[number][] = ['running', 'rate_limited'];
/** Stream run states that still change. */
export const LIVE_STREAM_RUN: typeof HELD_STREAM_RUN = ['pending', 'retrying', ...HELD_STREAM_RUN];

export const SCHEDULE_TYPES = ['manual', 'interval', 'cron', 'continuous'] as const;

export const VERIFICATION_STATUSES = ['queued', 'running', 'stopping', 'succeeded', 'failed', 'stopped'] as const;
/** Verification states that still change. */
export const LIVE_VERIFICATION: (typeof VERIFICATION_STATUSES)[number][] = ['queued', 'running', 'stopping'];

/** Lists of the console whose filters a saved view holds. */
export const VIEWED_PAGES = ['connections', 'cases', 'events', 'audit'] as const;
