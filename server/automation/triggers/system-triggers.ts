import { sql } from 'drizzle-orm';
import { accounts, type TriggerRow, triggers } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { compiledRule } from '../rules/compiled-rules.ts';
import { DEFAULT_CASE_SETTINGS } from './trigger-index.ts';

interface SystemTrigger {
  name: string;
  description: string;
  rule: string;
  severity: TriggerRow['severity'];
  group_by: string[];
  resolve_rule: string | null;
  /** Default: it opens cases. */
  open?: boolean;
}

/** The trigger with the actions that send the digest. */
export const DAILY_DIGEST = 'daily_digest';

/** Triggers that every account has from the start. Users add the actions. */
const SYSTEM_TRIGGERS: Readonly<Record<string, SystemTrigger>> = {
  connection_failed: {
    name: 'Connection failed',
    description: 'A run failed or partially failed, on a connection that notifies on failure',
    rule: 'event in ["connection_failed", "connection_partially_failed"] && notify_on_failure != false',
    severity: 'high',
    group_by: ['connection_id'],
    resolve_rule: null,
  },
  connection_auto_disabled: {
    name: 'Connection auto-disabled',
    description: 'A connection was disabled automatically, for another reason than a breaking schema change',
    rule: 'event == "connection_auto_disabled" && status_reason != "breaking_schema_change"',
    severity: 'critical',
    group_by: ['connection_id'],
    resolve_rule: 'event == "connection_resumed"',
  },
  breaking_schema_change: {
    name: 'Breaking schema change',
    description: 'A source changed in a way that its connections cannot apply, before a run failed because of it',
    rule: 'event == "schema_change_breaking" && (found_by_run != true || notify_on_failure == false)',
    severity: 'critical',
    group_by: ['connection_id'],
    resolve_rule: null,
  },
  plan_limit: {
    name: 'Plan limit ≥ 80/100 %',
    description: 'A limit of the billing plan is reached or almost reached',
    rule: 'event in ["plan_limit_warning", "plan_limit_reached"]',
    severity: 'warning',
    group_by: ['limit'],
    resolve_rule: null,
  },
  api_key_expiring: {
    name: 'API key expiring',
    description: 'An API key expires soon or has expired',
    rule: 'event in ["api_key_expiring", "api_key_expired"]',
    severity: 'warning',
    group_by: ['user_id'],
    resolve_rule: 'event in ["api_key_created", "api_key_rotated"]',
  },
  configuration_drift: {
    name: 'Configuration drift',
    description: 'The account differs from a file, as `apply --dry-run --report` found',
    rule: 'event == "configuration_drifted"',
    severity: 'warning',
    group_by: ['file', 'owner'],
    resolve_rule: null,
  },
  [DAILY_DIGEST]: {
    name: 'Daily digest',
    description:
      'What happened in a day: runs, failures, open cases, late data. Set its time in the notification settings',
    rule: 'event == "daily_digest"',
    severity: 'low',
    group_by: [],
    resolve_rule: null,
    open: false,
  },
};

/** Columns that this file defines; users cannot change them. */
const OWNED = ['rule', 'normalized_rule', 'matched_kinds', 'severity', 'group_by', 'case_settings'] as const;
const columns = (table: string) => sql.raw(OWNED.map((name) => `${table}.${name}`).join(', '));

/**
 * Creates missing system triggers and updates the rules of existing ones to this version, for all accounts or one. Keeps
 * whatever users can change. Idempotent.
 */
export async function ensureSystemTriggers(db: Db, only?: string): Promise<void> {
  const ids = only === undefined ? await db.select({ id: accounts.id }).from(accounts) : [{ id: only }];
  for (const { id } of ids) await ensureFor(db, id);
}

async function ensureFor(db: Db, account_id: string): Promise<void> {
  const rows = Object.entries(SYSTEM_TRIGGERS).map(([system_key, { resolve_rule, open = true, rule, ...trigger }]) => {
    const compiled = compiledRule(rule);
    return {
      ...trigger,
      account_id,
      system_key,
      is_system: true,
      rule,
      normalized_rule: compiled.normalized,
      matched_kinds: compiled.kinds,
      actions: [],
      case_settings: { ...DEFAULT_CASE_SETTINGS, open, resolve_rule },
    };
  });
  await db
    .insert(triggers)
    .values(rows)
    .onConflictDoUpdate({
      target: [triggers.account_id, triggers.system_key],
      targetWhere: sql`${triggers.system_key} is not null`,
      set: Object.fromEntries(OWNED.map((name) => [name, sql.raw(`excluded.${name}`)])),
      setWhere: sql`(${columns('triggers')}) is distinct from (${columns('excluded')})`,
    });
}
