import { and, eq, isNull, sql } from 'drizzle-orm';
import { accountConnectors } from '../../db/schema/index.ts';
import { ConfigurationError } from '../connectors/contract/errors.ts';
import type { Deps } from '../deps.ts';
import { publicKeyOf, type SshPublicKey } from '../platform/ssh-keys.ts';
import type { TunnelSettings } from './ssh-tunnel.ts';

/** A tunnel as an account connector's row has it. */
export interface StoredTunnel extends Record<string, unknown> {
  enabled: boolean;
  host: string;
  port: number;
  username: string;
  /** Of the key that logs in. */
  public_key: string;
  fingerprint: string;
  /** Sealed for the account: `openSshKey` opens it. */
  encrypted_private_key: string;
  /** Of the server's key; none until the first login. */
  host_key_fingerprint?: string | null;
  /** Of another key that the server showed at the last test. */
  refused_host_key_fingerprint?: string | null;
}

interface TunnelledRow {
  id: string;
  account_id: string;
  ssh_tunnel: Record<string, unknown> | null;
}

/** What private keys are sealed for: not a row, since there is none yet when a key is made. */
const context = (account_id: string) => `ssh_key:${account_id}`;

export const sealSshKey = (deps: Deps, account_id: string, private_key: string): string =>
  deps.secrets.seal(private_key, context(account_id));

/** @throws Error when it was not sealed by this service for this account */
export function openSshKey(deps: Deps, account_id: string, blob: string): SshPublicKey & { private_key: string } {
  const private_key = deps.secrets.open(blob, context(account_id));
  return { private_key, ...publicKeyOf(private_key) };
}

/** The tunnel that a row's connections go through; null: none. @throws ConfigurationError when its key does not open. */
export function tunnelOf(deps: Deps, row: TunnelledRow): TunnelSettings | null {
  const stored = row.ssh_tunnel as StoredTunnel | null;
  if (!stored?.enabled) return null;
  const { host, port, username } = stored;
  const host_key_fingerprint = stored.host_key_fingerprint ?? null;
  return { host, port, username, host_key_fingerprint, private_key: privateKeyOf(deps, row.account_id, stored) };
}

function privateKeyOf(deps: Deps, account_id: string, stored: StoredTunnel): string {
  try {
    return openSshKey(deps, account_id, stored.encrypted_private_key).private_key;
  } catch {
    throw new ConfigurationError('invalid_ssh_key', 'The key of the SSH tunnel cannot be opened: set another one');
  }
}

/** The private key of a row's tunnel, whole and line by line: what no log may show. */
export function tunnelSecrets(deps: Deps, row: TunnelledRow): string[] {
  if (!row.ssh_tunnel) return [];
  try {
    const private_key = privateKeyOf(deps, row.account_id, row.ssh_tunnel as StoredTunnel);
    return [private_key, ...private_key.split('\n').filter((line) => line !== '' && !line.startsWith('-----'))];
  } catch {
    return [];
  }
}

/**
 * Notes the first key that the tunnel's server showed: from here on it is the only one. A row that is not stored yet,
 * or leads elsewhere by now, stays as it is.
 * @throws ConfigurationError `ssh_host_key_changed` when another one was noted meanwhile
 */
export async function pinHostKey(deps: Deps, row: TunnelledRow, fingerprint: string): Promise<void> {
  const { host, port } = row.ssh_tunnel as StoredTunnel;
  const noted = sql<string | null>`${accountConnectors.ssh_tunnel} ->> 'host_key_fingerprint'`;
  const same = and(
    eq(accountConnectors.id, row.id),
    sql`${accountConnectors.ssh_tunnel} @> ${JSON.stringify({ host, port })}::text::jsonb`,
  );
  const first = { host_key_fingerprint: fingerprint };
  await deps.db
    .update(accountConnectors)
    .set({ ssh_tunnel: sql`${accountConnectors.ssh_tunnel} || ${JSON.stringify(first)}::text::jsonb` })
    .where(and(same, isNull(noted)));
  const [now] = await deps.db.select({ fingerprint: noted }).from(accountConnectors).where(same);
  if (!now || now.fingerprint === fingerprint) return;
  throw new ConfigurationError('ssh_host_key_changed', `The SSH server ${host}:${port} shows different host keys`);
}
