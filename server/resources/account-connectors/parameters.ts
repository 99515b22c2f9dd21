import type { AccountConnectorRow } from '../../../db/schema/index.ts';
import type { AnyConnector } from '../../connectors/contract/connector.ts';
import { describeParameters, keyedAddressNames, secretNames } from '../../connectors/contract/parameters.ts';
import type { Deps } from '../../deps.ts';
import { parseSettings } from '../../connector-runtime/parse-settings.ts';
import { secretsContext } from '../../connector-runtime/connector-secrets.ts';
import type { Ctx } from '../../api/procedure.ts';
import { refuseReferences } from '../../api/refuse-references.ts';
import { badRequest } from '../../platform/errors.ts';
import { MASK } from '../../platform/mask.ts';
import { maskAddresses, maskedAddressProblems, unmaskAddresses } from './secrets/keyed-addresses.ts';

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
  const addresses = new Set(keyedAddressNames(connector.config));
  for (const [name, value] of Object.entries(given)) {
    if (value === MASK && secrets.has(name)) continue;
    if (value === null) delete all[name];
    else all[name] = addresses.has(name) ? unmaskAddresses(value, current[name]) : value;
  }
  return all;
}

/**
 * Merges `given` into the current parameters and validates the result.
 * @throws ApiError 400 `missing_parameter`, `invalid_parameter`, `secret_reference_not_allowed` or a connector's own code,
 * with `field` and `parameter`.
 */
export async function checkParameters(
  ctx: Pick<Ctx, 'principal' | 'deps'>,
  connector: AnyConnector,
  given: Record<string, unknown>,
  current: Record<string, unknown>,
): Promise<CheckedParameters> {
  refuseSecretReferences(ctx, connector, given);
  const all = overlayParameters(connector, given, current);
  const secrets = new Set(secretNames(connector.config));
  const masked = maskedAddressProblems(connector, all);
  const parsed = await parseSettings(ctx.principal.account_id, connector, all);
  if ('config' in parsed && masked.length === 0) return { all: parsed.config, lacks_credentials: false };
  const problems = [...masked, ...('problems' in parsed ? parsed.problems : [])];
  const fatal = problems.find((problem) => problem.code !== 'missing_parameter' || !secrets.has(problem.parameter));
  if (!fatal) return { all, lacks_credentials: true };
  throw badRequest(fatal.code, fatal.message, {
    field: fatal.parameter ? `parameters.${fatal.parameter}` : 'parameters',
    parameter: fatal.parameter || null,
  });
}

/** @throws ApiError 400 `secret_reference_not_allowed` */
export function refuseSecretReferences(
  ctx: Pick<Ctx, 'principal' | 'deps'>,
  connector: AnyConnector,
  given: Record<string, unknown>,
): void {
  for (const parameter of secretNames(connector.config)) {
    refuseReferences(ctx, given[parameter], { field: `parameters.${parameter}`, parameter });
  }
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
 * responses need no decryption. Of an address with credentials the rest stays visible.
 */
export function sealParameters(
  deps: Deps,
  connector: AnyConnector,
  input: { row: { account_id: string; id: string }; all: Record<string, unknown> },
): Pick<AccountConnectorRow, 'parameters' | 'secrets'> {
  const names = new Set(secretNames(connector.config));
  const addresses = new Set(keyedAddressNames(connector.config));
  const entries = Object.entries(input.all).filter(([, value]) => value != null);
  const shown = Object.fromEntries(
    entries.map(([name, value]) => [name, names.has(name) ? MASK : addresses.has(name) ? maskAddresses(value) : value]),
  );
  const secret = entries.filter(([name, value]) => names.has(name) || shown[name] !== value);
  return {
    parameters: shown,
    secrets:
      secret.length > 0
        ? deps.secrets.seal(JSON.stringify(Object.fromEntries(secret)), secretsContext(input.row))
        : null,
  };
}
