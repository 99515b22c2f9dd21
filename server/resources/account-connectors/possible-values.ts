import type { AccountConnectorRow } from '../../../db/schema/index.ts';
import type { AnyConnector } from '../../connectors/contract/connector.ts';
import { type ConnectorParameter, describeParameters } from '../../connectors/contract/parameters.ts';
import { findConnector } from '../../connectors/registry.ts';
import { possibleValues } from '../../connector-runtime/account-connector-calls.ts';
import { parseSettings } from '../../connector-runtime/parse-settings.ts';
import { AnswerCache } from '../../connector-runtime/answer-cache.ts';
import { openParameters } from '../../connector-runtime/connector-secrets.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import { actorOf, type Ctx } from '../../api/procedure.ts';
import { asUpstreamError } from '../../api/upstream-error.ts';
import { findAccountConnector } from './query.ts';
import { unknownReference } from './stream-reference.ts';

const MAX_VALUES = 5000;

interface Question {
  account_connector_id: string;
  parameter_name: string;
  connection_id?: string;
  stream_id?: string;
}

type Values = Record<string, string>;

const answers = new AnswerCache<Values>();

/**
 * The values that a parameter can have, by value with their labels, sorted by label and at most 5,000. They are listed
 * by the remote system and cached for 60 s, or until the settings change.
 * @throws ApiError 400 `parameter_not_dynamic`, `missing_dependency`, `upstream_auth_failed`, `upstream_timeout`,
 * `upstream_error`; 404 for unknown references.
 */
export async function dynamicPossibleValues(ctx: Ctx, question: Question): Promise<Values> {
  const { account_connector_id, parameter_name, connection_id, stream_id } = question;
  const row = await findAccountConnector(ctx, account_connector_id, false);
  const connector = findConnector(row.connector_type as 'source', row.connector_name);
  const parameter = connector && describeParameters(connector).find((one) => one.name === parameter_name);
  if (!parameter) throw notFound('Parameter');
  const unknown = await unknownReference(ctx, { account_connector_id: row.id, connection_id, stream_id });
  if (unknown) throw notFound(unknown === 'stream' ? 'Stream' : 'Connection');
  if (!parameter.dynamic_possible_values) {
    throw badRequest('parameter_not_dynamic', `The values of ${parameter_name} cannot be listed`, {
      field: 'parameter_name',
    });
  }
  await refuseIncomplete(ctx, connector, parameter, openParameters(ctx.deps, row));
  const key = JSON.stringify([row.id, row.revision, parameter_name, connection_id, stream_id]);
  return answers.get(ctx.deps, key, () => listValues(ctx, row, parameter_name));
}

/** Missing credentials are reported like wrong ones: users fix both in the same place. */
async function refuseIncomplete(
  ctx: Ctx,
  connector: AnyConnector,
  parameter: ConnectorParameter,
  given: Record<string, unknown>,
): Promise<void> {
  const parsed = await parseSettings(ctx.principal.account_id, connector, given);
  const lacking = 'problems' in parsed ? parsed.problems.filter(({ code }) => code === 'missing_parameter') : [];
  const needed = (parameter.depends_on ?? []).filter((name) => given[name] == null || given[name] === '');
  // The parameter itself may still be empty: its values are being listed.
  const missing = [...needed, ...lacking.map((problem) => problem.parameter)].filter((name) => name !== parameter.name);
  if (missing.length === 0) return;
  const secret = new Set(
    describeParameters(connector)
      .filter((one) => one.secret)
      .map((one) => one.name),
  );
  if (missing.every((name) => secret.has(name))) {
    throw badRequest('upstream_auth_failed', 'The credentials are missing', { missing_parameters: missing });
  }
  throw badRequest('missing_dependency', `Fill in first: ${missing.join(', ')}`, { missing_parameters: missing });
}

async function listValues(ctx: Ctx, row: AccountConnectorRow, parameter: string): Promise<Values> {
  const values = await possibleValues(ctx.deps, row, { parameter, actor: actorOf(ctx.principal) }).catch(
    (error: unknown) => {
      throw asUpstreamError(error);
    },
  );
  const order = new Intl.Collator('en', { numeric: true });
  const sorted = Object.entries(values).toSorted(
    ([a, one], [b, two]) => order.compare(one, two) || order.compare(a, b),
  );
  return Object.fromEntries(sorted.slice(0, MAX_VALUES));
}
