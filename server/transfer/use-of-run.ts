import type { RunRow } from '../../db/schema/index.ts';
import type { SecretUse } from '../connector-runtime/secret-uses.ts';

/** What a run opens secrets for, and what started it. */
export function useOfRun({ id: connection_run_id, trigger_type: trigger, triggered_by: id }: RunRow): SecretUse {
  const type = id !== null ? 'user' : trigger === 'schedule' || trigger === 'automation' ? trigger : 'system';
  return { purpose: 'run', actor: { type, id }, connection_run_id };
}
