import { allConnectors, findConnector } from '../../connectors/registry.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import type { ConnectorType } from '../../api/wire-types.ts';
import { presentConnector } from './present.ts';
import type { ConnectorSchema } from './schema.ts';

/** The catalog, sources first, then by name. Test connectors are hidden. */
export const listConnectors = (): ConnectorSchema[] =>
  allConnectors()
    .filter((connector) => !connector.hidden)
    .map(presentConnector)
    .toSorted((a, b) => b.connector_type.localeCompare(a.connector_type) || a.name.localeCompare(b.name));

/** @throws ApiError 404; 400 `connector_id_mismatch` when `connector_id` belongs to a different connector. */
export function getConnector(
  { deps }: Pick<Ctx, 'deps'>,
  input: { connector_type: ConnectorType; connector_name: string; connector_id?: string },
): ConnectorSchema {
  const { connector_type, connector_name, connector_id } = input;
  const connector = findConnector(connector_type as 'source', connector_name);
  if (!connector || (connector.hidden && !deps.config.TEST_CONNECTORS)) throw notFound('Connector');
  const shown = presentConnector(connector);
  if (connector_id !== undefined && connector_id.toLowerCase() !== shown.id) {
    throw badRequest('connector_id_mismatch', `connector_id is not the id of ${connector_type} ${connector_name}`, {
      field: 'connector_id',
      connector_id: shown.id,
    });
  }
  return shown;
}
