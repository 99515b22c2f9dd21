import type { ApiClient } from '../../api.ts';
import type { AccountConnector } from '../actions/account-connectors.ts';
import type { Connection } from '../actions/connections.ts';
import type { Kind } from './document.ts';

export type Trigger = Awaited<ReturnType<ApiClient['automation']['listTriggers']['query']>>[number];

/** The account's current items. */
export interface Current {
  sources: AccountConnector[];
  destinations: AccountConnector[];
  connections: Connection[];
  triggers: Trigger[];
}

export async function readCurrent(api: ApiClient): Promise<Current> {
  const [connectors, connections, triggers] = await Promise.all([
    api.account_connectors.list.query(),
    api.connections.list.query(),
    api.automation.listTriggers.query({}),
  ]);
  return {
    sources: connectors.filter(({ connector_type }) => connector_type === 'source'),
    destinations: connectors.filter(({ connector_type }) => connector_type === 'destination'),
    connections,
    triggers: triggers.filter(({ is_system }) => !is_system),
  };
}

/** Items are identified by name, case-insensitively. */
export const findNamed = <K extends Kind>(current: Current, kind: K, name: unknown): Current[K][number] | undefined =>
  (current[kind] as Current[K][number][]).find((one) => one.name.toLowerCase() === String(name).toLowerCase());
