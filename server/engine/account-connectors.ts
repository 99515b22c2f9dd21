import type { accountConnectors } from '../../db/schema/index.ts';
import type { CheckResult, StreamSchema } from '../connectors/define.ts';
import type { ConnectorError } from '../connectors/errors.ts';
import type { Deps } from '../deps.ts';

export type AccountConnectorRow = typeof accountConnectors.$inferSelect;

/** The AAD under which an account connector's secrets are sealed. */
export const secretsContext = (row: { account_id: string; id: string }) => `account_connector:${row.account_id}:${row.id}`;

/** Parameters and opened secrets as one object, as the connector's `config` takes them. Never leaves the process. */
export declare function openParameters(deps: Deps, row: AccountConnectorRow): Record<string, unknown>;

/** Runs the connector's real check, 20 s at the most. Never throws for what the other side does: it is in `error`. */
export declare function testAccountConnector(
  deps: Deps,
  row: AccountConnectorRow,
): Promise<{ result: CheckResult; error: ConnectorError | null }>;

/** Calls one of the connector's `possibleValues`. @throws ConnectorError */
export declare function possibleValues(
  deps: Deps,
  row: AccountConnectorRow,
  parameter: string,
): Promise<Record<string, string>>;

export interface CatalogDiff {
  streams_added: string[];
  streams_removed: string[];
  streams_updated: string[];
}

/** Discovers and stores the catalog of a source. @throws ConnectorError; `catalog_status` is then `failed`. */
export declare function refreshCatalog(deps: Deps, row: AccountConnectorRow): Promise<CatalogDiff>;

export type Discovered = StreamSchema;
