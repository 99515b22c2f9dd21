import type { AnyConnector } from '../../../connectors/contract/connector.ts';
import { describeParameters, receivedValue } from '../../../connectors/contract/parameters.ts';
import type { StoredTunnel } from '../../../connector-runtime/tunnel-settings.ts';
import { badRequest } from '../../../platform/errors.ts';
import { MASK } from '../../../platform/mask.ts';

type Values = Record<string, unknown>;

interface Redirection {
  /** The parameters as stored and as they would be, decrypted. */
  before: Values;
  after: Values;
  /** The parameters of the request. */
  given: Values;
  /** The tunnel as stored and as it would be. */
  tunnels?: [StoredTunnel | null, StoredTunnel | null];
}

/** A change that would send stored secrets to another place, and the secrets to enter again. Null: allowed. */
export function redirectedSecrets(connector: AnyConnector, change: Redirection) {
  const { before, after, given, tunnels } = change;
  const known = describeParameters(connector);
  const moved = known
    .filter((parameter) => parameter.directs_secrets && !isSame(connector, parameter.name, { before, after }))
    .map(({ name }) => name);
  if (tunnels && isMoved(...tunnels)) moved.push('ssh_tunnel');
  if (moved.length === 0) return null;
  const secrets = known
    .filter(({ name, secret }) => secret && isPresent(before[name]) && !isGiven(given[name]))
    .map(({ name }) => name);
  if (secrets.length === 0) return null;
  const message =
    `A different ${moved.join(', ')} would receive the stored ${secrets.join(', ')}. ` +
    `Enter ${secrets.join(', ')} again together with the change`;
  return { message, moved, secrets };
}

/** @throws ApiError 400 `secrets_required` with `field`, `changed` and `secrets` */
export function requireSecretsAgain(connector: AnyConnector, change: Redirection): void {
  const redirected = redirectedSecrets(connector, change);
  if (!redirected) return;
  const { message, moved, secrets } = redirected;
  throw badRequest('secrets_required', message, { field: `parameters.${secrets[0]}`, changed: moved, secrets });
}

/** Null removes a stored secret, so it cannot go anywhere. */
const isGiven = (value: unknown) => value !== undefined && value !== MASK;

const isPresent = (value: unknown) => value != null && value !== '' && !Bun.deepEquals(value, {});

/** Compares what the connector would receive: an omitted value and its default are the same. */
function isSame(connector: AnyConnector, name: string, { before, after }: Pick<Redirection, 'before' | 'after'>) {
  return Bun.deepEquals(receivedValue(connector, name, before), receivedValue(connector, name, after));
}

/** A first host key replaces no other, so it redirects nothing. */
function isMoved(before: StoredTunnel | null, after: StoredTunnel | null): boolean {
  const [from, to] = [routeOf(before), routeOf(after)];
  if (!from || !to) return from !== to;
  const isRepinned = from.host_key !== null && from.host_key !== to.host_key;
  return from.host !== to.host || from.port !== to.port || isRepinned;
}

const routeOf = (tunnel: StoredTunnel | null) =>
  tunnel?.enabled ? { host: tunnel.host, port: tunnel.port, host_key: tunnel.host_key_fingerprint ?? null } : null;
