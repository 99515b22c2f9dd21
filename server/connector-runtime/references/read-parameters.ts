import type { AccountConnectorRow } from '../../../db/schema/index.ts';
import type { Deps } from '../../deps.ts';
import { openSecrets, withOpened } from '../connector-secrets.ts';
import { resolveReferences } from './resolve-references.ts';
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
  const { value, read } = await resolveReferences(deps, { account_id: row.account_id, value: secrets, reach });
  if (read.length > 0) noteValues(deps, row, read);
  return { ...row.parameters, ...value };
}
