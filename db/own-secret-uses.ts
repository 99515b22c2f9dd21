import { auditEvents } from './schema/index.ts';
import type { Db } from './types.ts';

/** What a secret of the installation is used for, by its setting. */
const ACTIONS = {
  OBJECT_STORE_URL: 'store_object',
  OIDC_PROVIDERS: 'sign_in',
  OPENLINEAGE_API_KEY: 'report_lineage',
  OTEL_EXPORTER_OTLP_HEADERS: 'send_traces',
  SMTP_URL: 'send_email',
  VAULT_TOKEN: 'read_secret',
} as const;

/** A secret of the installation's own settings, such as the password in `SMTP_URL`, and where it is sent. */
export interface OwnSecret {
  setting: keyof typeof ACTIONS;
  host: string;
}

const recorded = new WeakMap<Db, Map<string, Promise<unknown>>>();

/**
 * Records the use of a secret of the installation in the audit log, before it is sent. Such secrets serve all accounts
 * all the time: a process stores one entry a day for each host.
 */
export async function recordOwnUse(db: Db, { setting, host }: OwnSecret, now: Date): Promise<void> {
  const uses = recorded.get(db) ?? new Map<string, Promise<unknown>>();
  recorded.set(db, uses);
  const day = now.toISOString().slice(0, 10);
  const key = `${setting} ${host} ${day}`;
  for (const earlier of uses.keys()) if (!earlier.endsWith(day)) uses.delete(earlier);
  const stored = uses.get(key) ?? store(db, { setting, host });
  uses.set(key, stored);
  try {
    await stored;
  } catch (error) {
    uses.delete(key);
    throw error;
  }
}

const store = async (db: Db, { setting, host }: OwnSecret) => {
  await db.insert(auditEvents).values({
    kind: 'secret_use',
    action: ACTIONS[setting],
    actor_type: 'system',
    resource_type: 'setting',
    resource_id: setting,
    resource_name: setting,
    details: { host },
  });
};
