import { referencesIn } from '../connector-runtime/references/resolve-references.ts';
import type { Deps } from '../deps.ts';
import { badRequest } from '../platform/errors.ts';
import { checkReference } from '../platform/secret-references.ts';

/**
 * Secrets by reference that the operator does not allow to the account.
 * @throws ApiError 400 `secret_reference_not_allowed` with the given context
 */
export function refuseReferences(
  { deps, principal }: { deps: Deps; principal: { account_id: string } },
  value: unknown,
  context: { field: string; parameter?: string },
): void {
  for (const reference of referencesIn(value)) {
    try {
      checkReference(deps.config, principal.account_id, reference);
    } catch (error) {
      throw badRequest('secret_reference_not_allowed', (error as Error).message, context);
    }
  }
}
