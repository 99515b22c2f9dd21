import type { StoredTunnel } from '../../connector-runtime/tunnel-settings.ts';
import { badRequest } from '../../platform/errors.ts';
import { MASK } from '../../platform/mask.ts';
import type { Ctx } from '../../api/procedure.ts';
import type { AccountConnectorSchema, SshTunnelUpdate } from './schema.ts';
import { describeSshKey, sealOwnSshKey } from './ssh-key.ts';

type Caller = Pick<Ctx, 'deps' | 'principal'>;

/**
 * Merges a request into the current tunnel; null removes it. A missing or masked key keeps the stored one. A different
 * server resets the stored host key.
 * @throws ApiError 400 `invalid_ssh_key`, `missing_parameter`, with `field`.
 */
export function tunnelAfter(
  ctx: Caller,
  given: SshTunnelUpdate | null | undefined,
  current: StoredTunnel | null,
): StoredTunnel | null {
  if (given === undefined) return current;
  if (given === null) return null;
  const encrypted_private_key = keyAfter(ctx, given, current);
  const key = describeSshKey(ctx, encrypted_private_key);
  const { public_key, fingerprint } = key ?? { public_key: null, fingerprint: null };
  if (given.public_key != null && given.public_key.trim() !== public_key) {
    const message = key ? 'public_key does not match the private key' : 'Omit public_key: private_key is a reference';
    throw badRequest('invalid_ssh_key', message, { field: 'ssh_tunnel.public_key' });
  }
  const place = {
    host: given.host ?? current?.host ?? missing('host'),
    port: given.port ?? current?.port ?? 22,
  };
  const moved = place.host !== current?.host || place.port !== current.port;
  const known = moved ? null : (current?.host_key_fingerprint ?? null);
  return {
    enabled: given.enabled ?? current?.enabled ?? true,
    ...place,
    username: given.username ?? current?.username ?? missing('username'),
    public_key,
    fingerprint,
    encrypted_private_key,
    host_key_fingerprint: given.host_key_fingerprint === undefined ? known : given.host_key_fingerprint,
  };
}

function keyAfter(ctx: Caller, given: SshTunnelUpdate, current: StoredTunnel | null): string {
  const sealed = given.encrypted_private_key === MASK ? undefined : given.encrypted_private_key;
  const own = given.private_key === MASK ? undefined : given.private_key;
  if (sealed !== undefined && own !== undefined) {
    throw badRequest('invalid_ssh_key', 'Only one of encrypted_private_key and private_key is allowed', {
      field: 'ssh_tunnel.private_key',
    });
  }
  if (own !== undefined) return sealOwnSshKey(ctx, own);
  return sealed ?? current?.encrypted_private_key ?? missing('encrypted_private_key');
}

function missing(name: string): never {
  throw badRequest('missing_parameter', `ssh_tunnel requires ${name}`, { field: `ssh_tunnel.${name}` });
}

/** A tunnel in its wire form. */
export function presentTunnel(stored: Record<string, unknown> | null): AccountConnectorSchema['ssh_tunnel'] {
  if (!stored) return null;
  const {
    enabled,
    host,
    port,
    username,
    public_key,
    fingerprint,
    host_key_fingerprint = null,
    refused_host_key_fingerprint = null,
  } = stored as StoredTunnel;
  const host_keys = { host_key_fingerprint, refused_host_key_fingerprint };
  return { enabled, host, port, username, public_key, fingerprint, ...host_keys };
}
