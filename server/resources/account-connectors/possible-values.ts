import type { AccountConnectorRow } from '../../../db/schema/index.ts';
import type { AnyConnector } from '../../connectors/contract/connector.ts';
import { ConnectorError } from '../../connectors/contract/errors.ts';
import { type ConnectorParameter, describeParameters, parseParameters } from '../../connectors/contract/parameters.ts';
import { findConnector } from '../../connectors/registry.ts';
import type { Deps } from '../../deps.ts';
import { openParameters, possibleValues } from '../../connector-runtime/account-connector-calls.ts';
import { type ApiError, badRequest, notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import { findAccountConnector } from './query.ts';
import { strangerAmong } from './stream-reference.ts';

const MOST_VALUES = 5000;
const CACHE_MS = 60_000;
const MOST_CACHED = 1000;

interface Question {
  account_connector_id: string;
  parameter_name: string;
  connection_id?: string;
  stream_id?: string;
}

type Values = Record<string, string>;

/**
 * The values that a parameter can have, asked of the other side, label by label; an answer holds for a minute unless
 * the settings change.
 * @throws ApiError 400 `parameter_not_dynamic`, `missing_dependency`, `upstream_auth_failed`, `upstream_timeout`,
 * `upstream_error`; 404 for what the request names.
 */
export async function dynamicPossibleValues(ctx: Ctx, question: Question): Promise<Values> {
  const { account_connector_id, parameter_name, connection_id, stream_id } = question;
  const row = await findAccountConnector(ctx, account_connector_id, false);
  const connector = findConnector(row.connector_type as 'source', row.connector_name);
  const parameter = connector && describeParameters(connector).find((one) => one.name === parameter_name);
  if (!parameter) throw notFound('Parameter');
  const stranger = await strangerAmong(ctx, { account_connector_id: row.id, connection_id, stream_id });
  if (stranger) throw notFound(stranger === 'stream' ? 'Stream' : 'Connection');
  if (!parameter.dynamic_possible_values) {
    throw badRequest('parameter_not_dynamic', `${parameter_name} has no values to ask for`, {
      field: 'parameter_name',
    });
  }
  refuseIncomplete(connector, parameter, openParameters(ctx.deps, row));
  const key = JSON.stringify([row.id, row.revision, parameter_name, connection_id, stream_id]);
  return cached(ctx.deps, key, () => ask(ctx.deps, row, parameter_name));
}

/** What the question needs must be filled in; that the credentials are missing is the same to users as wrong ones. */
function refuseIncomplete(
  connector: AnyConnector,
  parameter: ConnectorParameter,
  given: Record<string, unknown>,
): void {
  const parsed = parseParameters(connector, given);
  const lacking = 'problems' in parsed ? parsed.problems.filter(({ code }) => code === 'missing_parameter') : [];
  const needed = (parameter.depends_on ?? []).filter((name) => given[name] == null || given[name] === '');
  // What is asked for need not be there yet.
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
  throw badRequest('missing_dependency', `First needed: ${missing.join(', ')}`, { missing_parameters: missing });
}

async function ask(deps: Deps, row: AccountConnectorRow, parameter: string): Promise<Values> {
  const values = await possibleValues(deps, row, parameter).catch((error: unknown) => {
    throw error instanceof ConnectorError ? upstream(error) : error;
  });
  const order = new Intl.Collator('en', { numeric: true });
  const sorted = Object.entries(values).toSorted(
    ([a, one], [b, two]) => order.compare(one, two) || order.compare(a, b),
  );
  return Object.fromEntries(sorted.slice(0, MOST_VALUES));
}

function upstream(error: ConnectorError): ApiError {
  const codes: Partial<Record<ConnectorError['type'], string>> = {
    auth_error: 'upstream_auth_failed',
    timeout: 'upstream_timeout',
  };
  return badRequest(codes[error.type] ?? 'upstream_error', error.message, { upstream_code: error.code });
}

const caches = new WeakMap<Deps, Map<string, { until: number; values: Promise<Values> }>>();

/** Whoever asks while an answer is on its way waits for that one. Failures are not kept. */
function cached(deps: Deps, key: string, load: () => Promise<Values>): Promise<Values> {
  const cache = caches.get(deps) ?? new Map<string, { until: number; values: Promise<Values> }>();
  caches.set(deps, cache);
  const now = deps.now().getTime();
  const known = cache.get(key);
  if (known && known.until > now) return known.values;
  for (const [old, { until }] of cache) if (until <= now || cache.size >= MOST_CACHED) cache.delete(old);
  const values = load();
  cache.set(key, { until: now + CACHE_MS, values });
  values.catch(() => cache.get(key)?.values === values && cache.delete(key));
  return values;
}
