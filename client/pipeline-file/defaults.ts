import { CASE_DEFAULTS } from '../case-defaults.ts';
import type { Body, Kind } from './keys.ts';

/** What the service fills in for a new item. An export leaves it out. */
export const DEFAULTS: Record<Extract<Kind, 'connections' | 'triggers'> | 'streams', Body> = {
  connections: {
    verification_schedule: null,
    backfill_days: 0,
    schema_change_policy: 'propagate_columns',
    consistency: 'run',
    inexact_values: 'refuse',
    rejected_rows_policy: 'fail',
    max_rejected_rows: 1000,
    max_parallel_streams: 4,
    notify_on_failure: true,
    status: 'active',
  },
  streams: { shared_destination_table: false },
  triggers: {
    enabled: true,
    severity: 'warning',
    threshold: 1,
    within_seconds: 0,
    posture: 'reactive',
    cooldown_seconds: 0,
    case: CASE_DEFAULTS,
  },
};

/** Whether rejected rows are kept by default depends on both sides, so for webhooks the export says it. */
export function connectionDefaults({ connector_name }: { connector_name: string }): Body {
  const { rejected_rows_policy, ...rest } = DEFAULTS.connections;
  return connector_name === 'webhook' ? rest : { ...rest, rejected_rows_policy };
}

/** The settings that differ from their defaults; of an object, its keys that do. */
export function withoutDefaults(body: Body, defaults: Body): Body {
  const entries = Object.entries(body).flatMap(([key, value]): [string, unknown][] => {
    const standard = defaults[key];
    if (!isObject(value) || !isObject(standard))
      return JSON.stringify(value) === JSON.stringify(standard) ? [] : [[key, value]];
    const inner = withoutDefaults(value, standard);
    return Object.keys(inner).length > 0 ? [[key, inner]] : [];
  });
  return Object.fromEntries(entries);
}

const isObject = (value: unknown): value is Body =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
