import type { AnyConnector } from '../connectors/contract/connector.ts';
import { ConnectorError } from '../connectors/contract/errors.ts';
import { documentNames, type ParsedParameters, parseParameters } from '../connectors/contract/parameters.ts';
import { runConnectorJob } from './run-connector-job.ts';

/** A caller waits for the result. Documents of real connectors take a tenth of a second. */
const LIMITS = { ms: 20_000, cpu_ms: 5_000 };

/**
 * Validates settings that a user sent, and fills in the defaults. A document is validated in a limited process; passing
 * a limit is a problem of the document.
 */
export async function parseSettings(
  account_id: string,
  connector: AnyConnector,
  parameters: Record<string, unknown>,
): Promise<ParsedParameters> {
  const document = documentNames(connector.config).find((name) => parameters[name] != null);
  if (document === undefined) return parseParameters(connector, parameters);
  const { type, name } = connector;
  try {
    const job = { operation: 'parse' as const, type, name, parameters };
    const [item] = await runConnectorJob(job, { owner: account_id, ...LIMITS });
    return item?.parsed ?? { problems: [] };
  } catch (error) {
    if (!(error instanceof ConnectorError)) throw error;
    return { problems: [{ parameter: document, code: 'invalid_parameter', message: error.message }] };
  }
}
