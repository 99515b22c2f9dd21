import { badRequest } from '../../lib/errors.ts';
import type { Ctx } from '../../procedure.ts';
import { MASK } from './parameters.ts';
import type { AccountConnectorSchema, SshTunnelUpdate } from './schema.ts';
import { openSshKey } from './ssh-key.ts';

/** A tunnel as it is stored. The private key is sealed for the account; `openSshKey` opens it. */
export interface StoredTunnel extends Record<string, unknown> {
  enabled: boolean;
  host: string;
  port: number;
  username: string;
  public_key: string;
  fingerprint: string;
  encrypted_private_key: string;
}

/**
 * Lays a request over the tunnel in force; null takes it away. Without a key, or with the mask for one, the key stays.
 * @throws ApiError 400 `invalid_ssh_key`, `missing_parameter`, with `field`.
 */
export function tunnelAfter(
  ctx: Pick<Ctx, 'deps' | 'principal'>,
  given: SshTunnelUpdate | null | undefined,
  current: StoredTunnel | null,
): StoredTunnel | null {
  if (given === undefined) return current;
  if (given === null) return null;
  const key = given.encrypted_private_key === MASK ? undefined : given.encrypted_private_key;
  const encrypted_private_key = key ?? current?.encrypted_private_key ?? missing('encrypted_private_key');
  const { public_key, fingerprint } = openSshKey(ctx.deps, ctx.principal.account_id, encrypted_private_key);
  if (given.public_key != null && given.public_key.trim() !== public_key) {
    throw badRequest('invalid_ssh_key', 'public_key does not belong to the private key', {
      field: 'ssh_tunnel.public_key',
    });
  }
  return {
    enabled: given.enabled ?? current?.enabled ?? true,
    host: given.host ?? current?.host ?? missing('host'),
    port: given.port ?? current?.port ?? 22,
    username: given.username ?? current?.username ?? missing('username'),
    public_key,
    fingerprint,
    encrypted_private_key,
  };
}

function missing(name: string): never {
  throw badRequest('missing_parameter', `The tunnel has no ${name}`, { field: `ssh_tunnel.${name}` });
}

/** What answers show of a tunnel. */
export function presentTunnel(stored: Record<string, unknown> | null): AccountConnectorSchema['ssh_tunnel'] {
  if (!stored) return null;
  const { enabled, host, port, username, public_key, fingerprint } = stored as StoredTunnel;
  return { enabled, host, port, username, public_key, fingerprint };
}
