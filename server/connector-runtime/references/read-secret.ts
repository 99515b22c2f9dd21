import { recordOwnUse } from '../../../db/own-secret-uses.ts';
import type { Deps } from '../../deps.ts';
import { variable } from '../../platform/config.ts';
import { readOwnReference, readReference, vaultHostOf } from '../../platform/secret-references.ts';

/**
 * The secret at a reference: one of an account, which has to be allowed, or without it one of the operator. That of Vault
 * is read with VAULT_TOKEN, whose use is recorded before.
 * @throws ReferenceError
 */
export async function readSecret(deps: Deps, reference: string, account_id: string | null = null): Promise<string> {
  const { config } = deps;
  const host = vaultHostOf(config, reference);
  if (host !== null) await recordOwnUse(deps.db, { setting: 'VAULT_TOKEN', host }, deps.now());
  return account_id === null
    ? readOwnReference(config, reference, variable)
    : readReference(config, reference, { account_id, variable });
}
