import type { AccountConnectorRow } from '../../../db/schema/index.ts';
import type { AnyConnector } from '../../connectors/contract/connector.ts';
import { describeParameters, parseParameters, secretNames } from '../../connectors/contract/parameters.ts';
import type { Deps } from '../../deps.ts';
import { secretsContext } from '../../connector-runtime/connector-secrets.ts';
import { badRequest } from '../../platform/errors.ts';

/** Replaces secrets in responses. Sent back, it means "unchanged". */
export const MASK = '**********';

export interface CheckedParameters {
  /** All parameters, decrypted. Never leaves the process. */
  all: Record<string, unknown>;
  /** Only credentials are missing: the connector can be stored but not used yet. */
  lacks_credentials: boolean;
}

/** Merges `given` into the current parameters: the mask keeps a secret, null restores the default. */
export function overlayParameters(
  connector: AnyConnector,
  given: Record<string, unknown>,
  current: Record<string, unknown>,
): Record<string, unknown> {
  const all = { ...current };
  const secrets = new Set(secretNames(connector.config));
  for (const [name, value] of Object.entries(given)) {
    if (value === MASK && secrets.has(name)) continue;
    if (value === null) delete all[name];
    else all[name] = value;
  }
  return all;
}

/**
 * Merges `given` into the current parameters and validates the result.
 * @throws ApiError 400 `missing_parameter`, `invalid_parameter` or a connector's own code, with `field` and `parameter`.
 */
export function checkParameters(
  connector: AnyConnector,
  given: Record<string, unknown>,
  current: Record<string, unknown>,
): CheckedParameters {
  const all = overlayParameters(connector, given, current);
  const secrets = new Set(secretNames(connector.config));
  const parsed = parseParameters(connector, all);
  if ('config' in parsed) return { all: parsed.config, lacks_credentials: false };
  const fatal = parsed.problems.find(
    (problem) => problem.code !== 'missing_parameter' || !secrets.has(problem.parameter),
  );
  if (!fatal) return { all, lacks_credentials: true };
  throw badRequest(fatal.code, fatal.message, {
    field: fatal.parameter ? `parameters.${fatal.parameter}` : 'parameters',
    parameter: fatal.parameter || null,
  });
}

/** Whether a change needs a new test: it affects the address or the credentials. */
export function sensitiveChange(
  connector: AnyConnector,
  before: Record<string, unknown>,
  after: Record<string, unknown>,
): boolean {
  return describeParameters(connector)
    .filter((parameter) => parameter.secret || parameter.group === 'connection' || parameter.group === 'authentication')
    .some(({ name }) => !Bun.deepEquals(before[name], after[name]));
}

/**
 * Splits parameters into a row's columns. Secrets are encrypted for that row and replaced by the mask, so that
 * responses need no decryption.
 */
export function sealParameters(
  deps: Deps,
  connector: AnyConnector,
  input: { row: { account_id: string; id: string }; all: Record<string, unknown> },
): Pick<AccountConnectorRow, 'parameters' | 'secrets'> {
  const names = new Set(secretNames(connector.config));
  const entries = Object.entries(input.all).filter(([, value]) => value != null);
  const secret = Object.fromEntries(entries.filter(([name]) => names.has(name)));
  return {
    parameters: Object.fromEntries(entries.map(([name, value]) => [name, names.has(name) ? MASK : value])),
    secrets:
      Object.keys(secret).length > 0 ? deps.secrets.seal(JSON.stringify(secret), secretsContext(input.row)) : null,
  };
}
