import type { AccountConnectorRow } from '../../db/schema/index.ts';
import type { ChatChannel } from '../connectors/contract/chat.ts';
import { findConnector } from '../connectors/registry.ts';
import type { Deps } from '../deps.ts';
import { badRequest } from '../platform/errors.ts';
import { presentable } from './account-connector-calls.ts';
import type { SecretUse } from './secret-uses.ts';
import { AnswerCache } from './answer-cache.ts';
import { notReady } from './require-ready.ts';
import { callConnector } from './call-connector.ts';

const LIMITS = { ms: 30_000, cpu_ms: 10_000 };

const lists = new AnswerCache<ChatChannel[]>();

/**
 * Lists the channels of a chat connector, sorted by name. The list is cached for 60 s, or until the connector's
 * settings change.
 * @throws ApiError 400 `not_a_chat_connector`, `account_connector_not_ready`, `upstream_error` with `upstream_code`
 */
export async function chatChannels(
  deps: Deps,
  row: AccountConnectorRow,
  actor: SecretUse['actor'],
): Promise<ChatChannel[]> {
  requireReadyChat(row);
  return lists.get(deps, `${row.id} ${row.revision}`, () => listChannels(deps, row, actor));
}

function requireReadyChat(row: AccountConnectorRow): void {
  const connector = findConnector(row.connector_type as 'destination', row.connector_name);
  if (connector?.type !== 'destination' || !connector.channels) {
    throw badRequest('not_a_chat_connector', `"${row.name}" is not a chat connector`, { account_connector_id: row.id });
  }
  if (row.status !== 'active') throw notReady(row);
}

async function listChannels(deps: Deps, row: AccountConnectorRow, actor: SecretUse['actor']): Promise<ChatChannel[]> {
  try {
    const items = await callConnector(
      deps,
      row,
      { operation: 'channels' },
      { ...LIMITS, use: { purpose: 'chat_channels', actor } },
    );
    const found = items.flatMap(({ channels }) => channels ?? []);
    return found.toSorted((a, b) => compare(a.name, b.name) || compare(a.id, b.id));
  } catch (thrown) {
    const error = presentable(deps, row, thrown);
    throw badRequest('upstream_error', error.message, { upstream_code: error.code, account_connector_id: row.id });
  }
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
