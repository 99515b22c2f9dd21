/** In order of dependency. */
export const KINDS = ['roles', 'users', 'sources', 'destinations', 'connections', 'triggers'] as const;
export type Kind = (typeof KINDS)[number];
export type Body = Record<string, unknown>;

const ACCOUNT_CONNECTOR = ['connector', 'parameters', 'auth_method', 'ssh_tunnel', 'datasets', 'credentials_expire_at'];

/** The keys of each kind; the service validates their values. */
export const KEYS: Record<Kind, { required: string[]; optional: string[] }> = {
  roles: { required: ['permissions'], optional: ['description'] },
  users: { required: ['roles'], optional: ['full_name'] },
  sources: { required: ['connector'], optional: ACCOUNT_CONNECTOR.slice(1) },
  destinations: { required: ['connector'], optional: ACCOUNT_CONNECTOR.slice(1) },
  connections: {
    required: ['source', 'destination'],
    optional: [
      'description',
      'schedule',
      'verification_schedule',
      'backfill_days',
      'start_date',
      'destination_schema',
      'table_prefix',
      'streams',
      'schema_change_policy',
      'consistency',
      'inexact_values',
      'rejected_rows_policy',
      'max_rejected_rows',
      'max_parallel_streams',
      'notify_on_failure',
      'tags',
      'folder',
      'status',
    ],
  },
  triggers: {
    required: ['actions'],
    optional: [
      'rule',
      'condition',
      'description',
      'enabled',
      'event_types',
      'severity',
      'threshold',
      'within_seconds',
      'posture',
      'expect',
      'group_by',
      'cooldown_seconds',
      'case',
    ],
  },
};
