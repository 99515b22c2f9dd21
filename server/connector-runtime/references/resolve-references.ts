import type { AccountConnectorRow } from '../../../db/schema/index.ts';
import { ConfigurationError, RetryableError } from '../../connectors/contract/errors.ts';
import type { Deps } from '../../deps.ts';
import { variable } from '../../platform/config.ts';
import { isReference, readReference, ReferenceError } from '../../platform/secret-references.ts';
import { openSecrets, withOpened } from '../connector-secrets.ts';
import { noteValues } from './values-read.ts';

type Values = Record<string, unknown>;

/**
 * A row's parameters with its secrets, those by reference included. They are read at each use and stored nowhere.
 * `reach` records each reference that is read, before it is read.
 * @throws ConfigurationError, RetryableError when a reference gives no secret
 */
export async function readParameters(
  deps: Deps,
  row: AccountConnectorRow,
  reach: (place: string) => Promise<void>,
): Promise<Values> {
  const secrets = withOpened(() => openSecrets(deps, row));
  // Without the setting, values in this form are secrets like any other.
  if (deps.config.SECRET_REFERENCES.length === 0) return { ...row.parameters, ...secrets };
  const found = new Map<string, string>();
  for (const reference of new Set(referencesIn(secrets))) {
    await reach(reference);
    found.set(reference, await read(deps, row, reference));
  }
  if (found.size > 0) noteValues(deps, row, [...found.values()]);
  return { ...row.parameters, ...(replaced(secrets, found) as Values) };
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

async function read(deps: Deps, row: AccountConnectorRow, reference: string): Promise<string> {
  try {
    const { account_id } = row;
    return await readReference(deps.config, reference, { account_id, egress: deps.egress, variable });
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    if (error.reason === 'unreachable') throw new RetryableError('secret_store_unreachable', error.message);
    throw new ConfigurationError(CODES[error.reason], error.message);
  }
}
