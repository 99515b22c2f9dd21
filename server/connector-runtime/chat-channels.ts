import type { AccountConnectorRow } from '../../db/schema/index.ts';
import type { ChatChannel } from '../connectors/contract/chat.ts';
import { findConnector } from '../connectors/registry.ts';
import type { Deps } from '../deps.ts';
import { badRequest } from '../platform/errors.ts';
import { presentable, withConnector } from './account-connector-calls.ts';

const FRESH_MS = 60_000;
const MAX_KNOWN = 500;
const TIMEOUT_MS = 30_000;

interface Known {
  /** Changes of the connector make another list. */
  revision: number;
  until: number;
  channels: Promise<ChatChannel[]>;
}

/** Lists do not outlive what they were asked with. */
const lists = new WeakMap<Deps, Map<string, Known>>();

/**
 * The channels of a chat connector, by name; asked for live, then kept for 60 s. Callers at the same time share one
 * question.
 * @throws ApiError 400 `not_a_chat_connector`, `account_connector_not_ready`, `upstream_error` with `upstream_code`.
 */
export async function chatChannels(deps: Deps, row: AccountConnectorRow): Promise<ChatChannel[]> {
  refuseUnready(row);
  const known = lists.get(deps) ?? new Map<string, Known>();
  lists.set(deps, known);
  const now = deps.now().getTime();
  const kept = known.get(row.id);
  if (kept && kept.revision === row.revision && kept.until > now) return kept.channels;
  const channels = ask(deps, row);
  if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value!);
  const entry = { revision: row.revision, until: now + FRESH_MS, channels };
  known.set(row.id, entry);
  // A failure is told to those who waited for it, and to nobody after them.
  channels.catch(() => known.get(row.id) === entry && known.delete(row.id));
  return channels;
}

function refuseUnready(row: AccountConnectorRow): void {
  const connector = findConnector(row.connector_type as 'destination', row.connector_name);
  if (connector?.type !== 'destination' || !connector.capabilities?.chat || !connector.channels) {
    throw badRequest('not_a_chat_connector', `"${row.name}" has no channels`, { account_connector_id: row.id });
  }
  if (row.status === 'active') return;
  throw badRequest('account_connector_not_ready', `"${row.name}" is not ready`, {
    account_connector_id: row.id,
    status: row.status,
    status_message: row.status_message,
  });
}

async function ask(deps: Deps, row: AccountConnectorRow): Promise<ChatChannel[]> {
  try {
    const found = await withConnector(deps, row, TIMEOUT_MS, async ({ connector, ctx }) =>
      connector.type === 'destination' && connector.channels ? connector.channels(ctx) : [],
    );
    return found.toSorted((a, b) => compare(a.name, b.name) || compare(a.id, b.id));
  } catch (thrown) {
    const error = presentable(deps, row, thrown);
    throw badRequest('upstream_error', error.message, { upstream_code: error.code, account_connector_id: row.id });
  }
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
