import { createHash, timingSafeEqual } from 'node:crypto';
import type { Deps } from '../../deps.ts';

export const WEBHOOK_PATH = '/webhooks';
/** Path parameters by position. */
export const WEBHOOK_TEMPLATE = `${WEBHOOK_PATH}/{account_connector_id}/{token}`;

/** Follows from the master key, so that no table contains an address. */
const tokenOf = ({ secrets }: Pick<Deps, 'secrets'>, id: string, version: number) =>
  Buffer.from(secrets.hmac('webhook_address', `${id}:${version}`), 'hex').toString('base64url');

/** Where senders send events of a source. Callers that know it can send, unless the source asks for a signature. */
export const addressOf = (
  deps: Pick<Deps, 'secrets' | 'config'>,
  inbox: { account_connector_id: string; address_version: number },
): string =>
  `${deps.config.PUBLIC_URL}${WEBHOOK_PATH}/${inbox.account_connector_id}/${tokenOf(deps, inbox.account_connector_id, inbox.address_version)}`;

interface Addressed {
  account_connector_id: string;
  address_version: number;
  previous_address_until: string | null;
}

/** Whether the token belongs to the address of the inbox, or to the one before it while that works. */
export function isToken(deps: Pick<Deps, 'secrets' | 'now'>, inbox: Addressed, token: string): boolean {
  const { account_connector_id: id, address_version: version, previous_address_until: until } = inbox;
  const current = isSame(token, tokenOf(deps, id, version));
  const previous = isSame(token, tokenOf(deps, id, version - 1));
  return current || (previous && until !== null && Date.parse(until) > deps.now().getTime());
}

const digest = (text: string) => createHash('sha256').update(text).digest();
const isSame = (given: string, expected: string) => timingSafeEqual(digest(given), digest(expected));
