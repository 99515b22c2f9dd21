import type { CustomConnectorRow } from '../../../db/schema/index.ts';
import type { AnyConnector, ConnectorOutline } from '../../connectors/contract/connector.ts';
import { type ConnectorParameter, describeParameters } from '../../connectors/contract/parameters.ts';
import { findConnector } from '../../connectors/registry.ts';
import { isApplication } from '../../pipeline/connection-kind.ts';
import { connectorId } from '../../api/connector-id.ts';
import { DOCUMENTS } from '../access/custom-connectors.ts';
import type { ConnectorParameterSchema, ConnectorSchema } from './schema.ts';

/** The catalog ships with the service, so its entries have the date of the release. */
const RELEASED_AT = '2026-11-21T00:00:00.000Z';

const presented = new WeakMap<AnyConnector, ConnectorSchema>();

/** A connector in the catalog. */
export function presentConnector(connector: AnyConnector): ConnectorSchema {
  const known = presented.get(connector);
  if (known) return known;
  const shown = present(connector);
  presented.set(connector, shown);
  return shown;
}

/** A connector that an account has added to its catalog. */
export function presentCustomConnector(row: CustomConnectorRow): ConnectorSchema {
  const shown = presentConnector(findConnector('source', 'airbyte_manifest')!);
  const { name, display_name, description, icon, documentation_url, version, created_at, updated_at } = row;
  // Connectors that were added before have none until they are updated.
  const { specification = null } = row.outline as Partial<ConnectorOutline>;
  return {
    ...shown,
    id: connectorId({ type: 'source', name }),
    name,
    display_name,
    description,
    icon_url: icon,
    documentation_url,
    version: String(version),
    parameters: shown.parameters
      .filter((parameter) => !DOCUMENTS.includes(parameter.name))
      .map((parameter) => (parameter.name === 'config' ? { ...parameter, json_schema: specification } : parameter)),
    created_at,
    updated_at,
  };
}

function present(connector: AnyConnector): ConnectorSchema {
  const { name, display_name, description, category, version, release_stage, auth_methods } = connector;
  return {
    id: connectorId(connector),
    connector_type: connector.type,
    name,
    display_name,
    description,
    category,
    icon_url: null,
    documentation_url: connector.documentation_url ?? null,
    changelog_url: null,
    version,
    release_stage,
    availability: 'available',
    auth_methods,
    capabilities: capabilitiesOf(connector),
    supported_sync_modes: connector.type === 'source' ? connector.supported_sync_modes : [],
    supported_destination_sync_modes:
      connector.type === 'destination' ? connector.supported_destination_sync_modes : [],
    parameters: describeParameters(connector).map(presentParameter),
    oauth: null,
    rate_limit_notes: null,
    created_at: RELEASED_AT,
    updated_at: RELEASED_AT,
  };
}

function capabilitiesOf(connector: AnyConnector): ConnectorSchema['capabilities'] {
  const reads = connector.type === 'source' ? connector.supported_sync_modes : [];
  const writes = connector.type === 'destination' ? connector.supported_destination_sync_modes : [];
  return {
    incremental: reads.includes('incremental') || writes.includes('append_dedup'),
    full_refresh: reads.includes('full_refresh') || writes.includes('overwrite'),
    cdc: connector.type === 'source' && connector.acknowledge !== undefined,
    date_window: reads.includes('incremental'),
    dynamic_streams: connector.type === 'source',
    reverse_etl: connector.type === 'destination' && isApplication(connector),
    network_logs: !connector.offline,
    export_metadata: connector.type === 'source',
    ssh_tunnel: connector.capabilities?.ssh_tunnel === true,
    chat: connector.type === 'destination' && connector.postMessage !== undefined,
    datasets: connector.type === 'source' && connector.capabilities?.datasets === true,
    table_preview: connector.type === 'destination' && connector.sampleTable !== undefined,
    oauth_consent: connector.consent !== undefined,
    webhooks: connector.type === 'source' && connector.receiver !== undefined,
  };
}

const presentParameter = (parameter: ConnectorParameter): ConnectorParameterSchema => ({
  ...parameter,
  description: parameter.description ?? null,
  default: parameter.secret ? null : (parameter.default ?? null),
  placeholder: parameter.placeholder ?? null,
  pattern: parameter.pattern ?? null,
  minimum: parameter.minimum ?? null,
  maximum: parameter.maximum ?? null,
  possible_values: parameter.possible_values ?? null,
  depends_on: parameter.depends_on ?? null,
  visible_when: parameter.visible_when ?? null,
  json_schema: null,
});
