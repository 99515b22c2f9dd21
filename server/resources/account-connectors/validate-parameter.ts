import type { AccountConnectorRow } from '../../../db/schema/index.ts';
import type { AnyConnector } from '../../connectors/contract/connector.ts';
import {
  type ConnectorParameter,
  describeParameters,
  type ParameterProblem,
  receivedValue,
} from '../../connectors/contract/parameters.ts';
import { findConnector } from '../../connectors/registry.ts';
import { testAccountConnector } from '../../connector-runtime/account-connector-calls.ts';
import { parseSettings } from '../../connector-runtime/parse-settings.ts';
import { openParameters } from '../../connector-runtime/connector-secrets.ts';
import { badRequest } from '../../platform/errors.ts';
import { MASK } from '../../platform/mask.ts';
import { actorOf, type Ctx, requirePermission } from '../../api/procedure.ts';
import { maskAddresses, maskedAddressProblems } from './secrets/keyed-addresses.ts';
import { overlayParameters, sealParameters } from './parameters.ts';
import { findAccountConnector } from './query.ts';
import { redirectedSecrets } from './secrets/redirected-secrets.ts';
import { unknownReference } from './stream-reference.ts';
import type { Finding, ValidationRequest, ValidationResult } from './validation-schema.ts';

/**
 * Validates a parameter value by the parameter's own rules and, where that can find more, by the connector's check with
 * the value in place. Nothing is stored.
 * @throws ApiError 400 `unknown_parameter`, `invalid_reference`, with `field`.
 */
export async function validateParameter(
  ctx: Ctx,
  input: ValidationRequest & { account_connector_id: string },
): Promise<ValidationResult> {
  const started = performance.now();
  const row = await findAccountConnector(ctx, input.account_connector_id, false);
  requirePermission(ctx, `${row.connector_type}s.update`);
  const unknown = await unknownReference(ctx, { ...input, account_connector_id: row.id });
  if (unknown) {
    const field = `${unknown}_id`;
    throw badRequest('invalid_reference', `${field} does not refer to anything that uses "${row.name}"`, { field });
  }
  const { connector, parameter } = namedParameter(row, input);
  const given = { ...input.parameters, [parameter.name]: input.value };
  const stored = openParameters(ctx.deps, row);
  const candidate = overlayParameters(connector, given, stored);
  const parsed = await parseSettings(row.account_id, connector, candidate);
  const masked = maskedAddressProblems(connector, candidate);
  const problems = [...masked, ...('problems' in parsed ? parsed.problems : [])];
  const own = problems.filter((problem) => problem.parameter === parameter.name);
  const result = { errors: own.map(finding), warnings: problems.filter((one) => !own.includes(one)).map(finding) };
  const remote = 'config' in parsed && masked.length === 0 && needsRemoteCheck(parameter);
  const redirected = remote && redirectedSecrets(connector, { before: stored, after: candidate, given });
  const checked_remotely = remote && !redirected;
  if (redirected) result.errors.push({ code: 'secrets_required', message: redirected.message });
  if (checked_remotely) {
    const sealed = sealParameters(ctx.deps, connector, { row, all: parsed.config });
    const found = await remoteFindings(ctx, { ...row, ...sealed });
    result.errors.push(...found.errors);
    result.warnings.push(...found.warnings);
  }
  const is_valid = result.errors.length === 0;
  return {
    is_valid,
    parameter_name: parameter.name,
    ...result,
    normalized_value: is_valid ? normalized(connector, parameter, candidate) : null,
    checked_remotely,
    duration_ms: Math.round(performance.now() - started),
  };
}

function namedParameter(row: AccountConnectorRow, input: ValidationRequest) {
  const connector = findConnector(row.connector_type as 'source', row.connector_name);
  const known = connector ? describeParameters(connector) : [];
  const refuse = (name: string, field: string) =>
    badRequest('unknown_parameter', `${row.connector_name} has no parameter "${name}"`, { field });
  const parameter = known.find((one) => one.name === input.parameter_name);
  if (!connector || !parameter) throw refuse(input.parameter_name, 'parameter_name');
  const unknown = Object.keys(input.parameters ?? {}).find((name) => !known.some((one) => one.name === name));
  if (unknown !== undefined) throw refuse(unknown, `parameters.${unknown}`);
  return { connector, parameter };
}

/** The check depends on address and credentials, not on other settings. */
const needsRemoteCheck = ({ group, validates_remotely, directs_secrets }: ConnectorParameter) =>
  validates_remotely || directs_secrets || group === 'connection' || group === 'authentication';

const finding = ({ code, message }: ParameterProblem): Finding => ({ code, message });

/** A check that was skipped but names a remedy is about the value, too, such as a schema that others can write to. */
async function remoteFindings(ctx: Ctx, candidate: AccountConnectorRow) {
  const { result, error } = await testAccountConnector(ctx.deps, candidate, { actor: actorOf(ctx.principal) });
  if (error) return { errors: [{ code: error.code, message: error.message }], warnings: [] };
  const found = (wanted: typeof result.checks, code: string) =>
    wanted.map(({ message, title }): Finding => ({ code, message: message ?? title }));
  const skipped = result.checks.filter(({ status, fix }) => status === 'skipped' && fix);
  return {
    errors: found(
      result.checks.filter(({ status }) => status === 'failed'),
      'check_failed',
    ),
    warnings: found(skipped, 'check_skipped'),
  };
}

function normalized(connector: AnyConnector, parameter: ConnectorParameter, candidate: Record<string, unknown>) {
  const value = receivedValue(connector, parameter.name, candidate);
  return parameter.secret && value !== null ? MASK : parameter.keyed_address ? maskAddresses(value) : value;
}
