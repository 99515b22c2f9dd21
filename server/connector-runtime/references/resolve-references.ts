import { ConfigurationError, RetryableError } from '../../connectors/contract/errors.ts';
import type { Deps } from '../../deps.ts';
import { isReference, ReferenceError } from '../../platform/secret-references.ts';
import { readSecret } from './read-secret.ts';

interface Source<Value> {
  account_id: string;
  value: Value;
  /** Records each reference before it is read. */
  reach(place: string): Promise<void>;
}

/**
 * Replaces the references in secrets of an account by what they name, at any depth. `read` has the secrets found. Without
 * SECRET_REFERENCES, values in this form are secrets like any other.
 * @throws ConfigurationError, RetryableError when a reference gives no secret
 */
export const resolveReferences = async <Value>(
  deps: Deps,
  from: Source<Value>,
): Promise<{ value: Value; read: string[] }> =>
  deps.config.SECRET_REFERENCES.length === 0 ? { value: from.value, read: [] } : readReferences(deps, from);

/** The same for values that can only be references in this form. */
export async function readReferences<Value>(
  deps: Deps,
  { account_id, value, reach }: Source<Value>,
): Promise<{ value: Value; read: string[] }> {
  const found = new Map<string, string>();
  for (const reference of new Set(referencesIn(value))) {
    await reach(reference);
    found.set(reference, await read(deps, account_id, reference));
  }
  return { value: replaced(value, found) as Value, read: [...found.values()] };
}

/** All references in a value, at any depth. */
export function referencesIn(value: unknown): string[] {
  if (isReference(value)) return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(referencesIn) : [];
}

function replaced(value: unknown, found: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return found.get(value) ?? value;
  if (Array.isArray(value)) return value.map((item) => replaced(item, found));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, replaced(item, found)]));
}

const CODES = { not_allowed: 'secret_reference_not_allowed', not_found: 'secret_not_found', refused: 'secret_refused' };

async function read(deps: Deps, account_id: string, reference: string): Promise<string> {
  try {
    return await readSecret(deps, reference, account_id);
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    if (error.reason === 'unreachable') throw new RetryableError('secret_store_unreachable', error.message);
    throw new ConfigurationError(CODES[error.reason], error.message);
  }
}
