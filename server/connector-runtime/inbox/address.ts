import { createHash, timingSafeEqual } from 'node:crypto';
import type { Deps } from '../../deps.ts';

export const WEBHOOK_PATH = '/webhooks';
/** Path parameters by position. */
export const WEBHOOK_TEMPLATE = `${WEBHOOK_PATH}/{account_connector_id}/{token}`;

/** Follow from the root keys, so that no table contains an address. The first one is that of the current root. */
const tokensOf = ({ secrets }: Pick<Deps, 'secrets'>, id: string, version: number) =>
  secrets.hmacs('webhook_address', `${id}:${version}`).map((hash) => Buffer.from(hash, 'hex').toString('base64url'));

/** Where senders send events of a source. Callers that know it can send, unless the source asks for a signature. */
export const addressOf = (
  deps: Pick<Deps, 'secrets' | 'config'>,
  inbox: { account_connector_id: string; address_version: number },
): string =>
  `${deps.config.PUBLIC_URL}${WEBHOOK_PATH}/${inbox.account_connector_id}/${tokensOf(deps, inbox.account_connector_id, inbox.address_version)[0]}`;

interface Addressed {
  account_connector_id: string;
  address_version: number;
  previous_address_until: string | null;
}

/** Whether the token belongs to the address of the inbox, or to the one before it while that works. */
export function isToken(deps: Pick<Deps, 'secrets' | 'now'>, inbox: Addressed, token: string): boolean {
  const { account_connector_id: id, address_version: version, previous_address_until: until } = inbox;
  const isOf = (one: number) => tokensOf(deps, id, one).some((expected) => isSame(token, expected));
  const [current, previous] = [isOf(version), isOf(version - 1)];
  return current || (previous && until !== null && Date.parse(until) > deps.now().getTime());
}

const digest = (text: string) => createHash('sha256').update(text).digest();
const isSame = (given: string, expected: string) => timingSafeEqual(digest(given), digest(expected));
