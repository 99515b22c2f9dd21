import type { AnyConnector } from '../../connectors/contract/connector.ts';
import { findConnector } from '../../connectors/registry.ts';
import { badRequest } from '../../platform/errors.ts';
import { connectorId } from '../../api/connector-id.ts';
import type { Ctx } from '../../api/procedure.ts';
import type { CreateAccountConnectorRequest, UpdateAccountConnectorRequest } from './schema.ts';

/**
 * The connector named by a create request.
 * @throws ApiError 400 `unknown_connector`, `connector_type_mismatch`, `invalid_reference` (connector_id).
 */
export function namedConnector({ deps }: Pick<Ctx, 'deps'>, input: CreateAccountConnectorRequest): AnyConnector {
  const { connector_type, connector_name, connector_id } = input;
  const connector = findConnector(connector_type as 'source', connector_name);
  if (connector?.hidden && !deps.config.TEST_CONNECTORS) throw unknownConnector(connector_name);
  if (!connector) {
    const other = connector_type === 'source' ? 'destination' : 'source';
    if (findConnector(other as 'source', connector_name)) {
      throw badRequest('connector_type_mismatch', `${connector_name} is only available as a ${other}`, {
        field: 'connector_type',
      });
    }
    throw unknownConnector(connector_name);
  }
  if (connector_id !== undefined && connector_id.toLowerCase() !== connectorId(connector)) {
    throw badRequest('invalid_reference', `connector_id is not the id of ${connector_type} ${connector_name}`, {
      field: 'connector_id',
    });
  }
  return connector;
}

const unknownConnector = (name: string) =>
  badRequest('unknown_connector', `Unknown connector "${name}"`, { field: 'connector_name' });

/**
 * Rejects settings that the connector does not support.
 * @throws ApiError 400 `invalid_parameter` with `field`.
 */
export function refuseUnsupported(
  connector: AnyConnector,
  input: Pick<UpdateAccountConnectorRequest, 'auth_method' | 'ssh_tunnel' | 'datasets'>,
): void {
  const refuse = (field: string, message: string) => badRequest('invalid_parameter', message, { field });
  const { auth_method, ssh_tunnel, datasets } = input;
  if (auth_method !== undefined && !connector.auth_methods.some((method) => method === auth_method)) {
    throw refuse('auth_method', `${connector.name} supports ${connector.auth_methods.join(', ')}`);
  }
  if (ssh_tunnel && !connector.capabilities?.ssh_tunnel) {
    throw refuse('ssh_tunnel', `${connector.name} does not support SSH tunnels`);
  }
  if (!datasets?.length) return;
  if (connector.type !== 'source' || !connector.capabilities?.datasets) {
    throw refuse('datasets', `${connector.name} does not support datasets`);
  }
  const names = datasets.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw refuse('datasets', `Duplicate dataset name "${twice}"`);
}
