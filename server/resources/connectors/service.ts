import { allConnectors, findConnector, isCustomConnector } from '../../connectors/registry.ts';
import { badRequest, notFound } from '../../platform/errors.ts';
import type { Ctx } from '../../api/procedure.ts';
import type { ConnectorType } from '../../api/wire-types.ts';
import { findCustomConnector, listCustomConnectors } from '../access/custom-connectors.ts';
import { presentConnector, presentCustomConnector } from './present.ts';
import type { ConnectorSchema } from './schema.ts';

/** The catalog with what the account has added, sources first, then by name. Test connectors are hidden. */
export async function listConnectors(ctx: Ctx): Promise<ConnectorSchema[]> {
  const own = await listCustomConnectors(ctx);
  return [
    ...allConnectors()
      .filter((connector) => !connector.hidden)
      .map(presentConnector),
    ...own.map(presentCustomConnector),
  ].toSorted((a, b) => b.connector_type.localeCompare(a.connector_type) || a.name.localeCompare(b.name));
}

/** @throws ApiError 404; 400 `connector_id_mismatch` when `connector_id` belongs to a different connector. */
export async function getConnector(
  ctx: Ctx,
  input: { connector_type: ConnectorType; connector_name: string; connector_id?: string },
): Promise<ConnectorSchema> {
  const { connector_type, connector_name, connector_id } = input;
  const shown = await shownConnector(ctx, input);
  if (connector_id !== undefined && connector_id.toLowerCase() !== shown.id) {
    throw badRequest('connector_id_mismatch', `connector_id is not the id of ${connector_type} ${connector_name}`, {
      field: 'connector_id',
      connector_id: shown.id,
    });
  }
  return shown;
}

async function shownConnector(
  ctx: Ctx,
  { connector_type, connector_name }: { connector_type: ConnectorType; connector_name: string },
): Promise<ConnectorSchema> {
  const connector = findConnector(connector_type as 'source', connector_name);
  if (!connector || (connector.hidden && !ctx.deps.config.TEST_CONNECTORS)) throw notFound('Connector');
  if (!isCustomConnector(connector_name)) return presentConnector(connector);
  return presentCustomConnector(await findCustomConnector(ctx, connector_name));
}
