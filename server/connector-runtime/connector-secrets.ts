import type { AccountConnectorRow } from '../../db/schema/index.ts';
import { ConfigurationError } from '../connectors/contract/errors.ts';
import { keyedAddressNames } from '../connectors/contract/parameters.ts';
import { findConnector } from '../connectors/registry.ts';
import type { Deps } from '../deps.ts';
import { ApiError } from '../platform/errors.ts';
import { addressSecrets } from '../platform/keyed-address.ts';
import { createRedactor, type Redactor } from '../platform/redact.ts';
import { tunnelSecrets } from './tunnel-settings.ts';

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
export const redactorOf = (deps: Deps, rows: readonly AccountConnectorRow[]): Redactor =>
  createRedactor(
    rows.flatMap((row) => {
      try {
        return secretsOf(deps, row);
      } catch (error) {
        if (error instanceof ApiError) return [];
        throw error;
      }
    }),
  );

/** Every value that must not appear in a log: secret parameters, keys in addresses, the tunnel's private key. */
export function secretsOf(deps: Deps, row: AccountConnectorRow): string[] {
  const connector = findConnector(row.connector_type, row.connector_name);
  const addresses = new Set(connector ? keyedAddressNames(connector.config) : []);
  const secrets = Object.entries(openSecrets(deps, row)).flatMap(([name, value]) =>
    addresses.has(name) ? stringsIn(value).flatMap(addressSecrets) : stringsIn(value),
  );
  return [...secrets, ...tunnelSecrets(deps, row)];
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (value === null || typeof value !== 'object') return [];
  return Object.values(value).flatMap(stringsIn);
}
