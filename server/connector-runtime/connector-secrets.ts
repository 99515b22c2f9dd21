import type { AccountConnectorRow } from '../../db/schema/index.ts';
import { ConfigurationError } from '../connectors/contract/errors.ts';
import { keyedAddressNames } from '../connectors/contract/parameters.ts';
import { findConnector } from '../connectors/registry.ts';
import type { Deps } from '../deps.ts';
import { ApiError } from '../platform/errors.ts';
import { addressSecrets } from '../platform/keyed-address.ts';
import { isReference } from '../platform/secret-references.ts';
import { growingRedactor, type Redactor } from '../platform/redaction/redact.ts';
import { tunnelSecrets } from './tunnel-settings.ts';
import { valuesRead } from './references/values-read.ts';

/** Encryption context of an account connector's secrets. */
export const secretsContext = (row: { account_id: string; id: string }) =>
  `account_connector:${row.account_id}:${row.id}`;

/** Merges parameters and decrypted secrets into the connector's input. The result must never leave the process. */
export function openParameters(deps: Deps, row: AccountConnectorRow): Record<string, unknown> {
  return { ...row.parameters, ...openSecrets(deps, row) };
}

export function openSecrets(deps: Deps, row: AccountConnectorRow): Record<string, unknown> {
  return row.secrets
    ? (JSON.parse(deps.secrets.open(row.secrets, secretsContext(row))) as Record<string, unknown>)
    : {};
}

/** Runs work that opens secrets for a connector. @throws ConfigurationError `invalid_secret` if one does not open */
export function withOpened<Result>(open: () => Result): Result {
  try {
    return open();
  } catch (error) {
    throw error instanceof ApiError ? new ConfigurationError(error.code, error.message) : error;
  }
}

/** Redacts the secrets of these rows. A secret that does not open cannot appear in any text. */
export function redactorOf(deps: Deps, rows: readonly AccountConnectorRow[]): Redactor {
  const stored = rows.flatMap((row) => {
    try {
      return secretsOf(deps, row);
    } catch (error) {
      if (error instanceof ApiError) return [];
      throw error;
    }
  });
  let read = rows.map((row) => valuesRead(deps, row));
  let all = [...stored, ...read.flat()];
  return growingRedactor(() => {
    const now = rows.map((row) => valuesRead(deps, row));
    if (now.some((values, at) => values !== read[at])) [read, all] = [now, [...stored, ...now.flat()]];
    return all;
  });
}

/** Every value that must not appear in a log: secret parameters, keys in addresses, the tunnel's private key. */
export function secretsOf(deps: Deps, row: AccountConnectorRow): string[] {
  const connector = findConnector(row.connector_type, row.connector_name);
  const addresses = new Set(connector ? keyedAddressNames(connector.config) : []);
  const secrets = Object.entries(openSecrets(deps, row)).flatMap(([name, value]) =>
    addresses.has(name) ? stringsIn(value).flatMap(addressSecrets) : stringsIn(value),
  );
  // A reference is no secret: messages about it have to name it.
  const isSecret = (value: string) => deps.config.SECRET_REFERENCES.length === 0 || !isReference(value);
  return [...secrets, ...tunnelSecrets(deps, row)].filter(isSecret);
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (value === null || typeof value !== 'object') return [];
  return Object.values(value).flatMap(stringsIn);
}
