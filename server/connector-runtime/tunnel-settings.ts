import { and, eq, isNull, sql } from 'drizzle-orm';
import { accountConnectors } from '../../db/schema/index.ts';
import { ConfigurationError } from '../connectors/contract/errors.ts';
import type { Deps } from '../deps.ts';
import { isReference } from '../platform/secret-references.ts';
import { publicKeyOf, type SshPublicKey } from '../platform/ssh-keys.ts';
import { readReferences } from './references/resolve-references.ts';
import { noteValues } from './references/values-read.ts';
import type { TunnelSettings } from './ssh-tunnel.ts';

/** The tunnel in an account connector's row. */
export interface StoredTunnel extends Record<string, unknown> {
  enabled: boolean;
  host: string;
  port: number;
  username: string;
  /** The public half of the SSH key, and its fingerprint. Null for a key by reference. */
  public_key: string | null;
  fingerprint: string | null;
  /** The key or the reference to one, encrypted for the account. */
  encrypted_private_key: string;
  /** Fingerprint of the server's key; not set before the first login. */
  host_key_fingerprint?: string | null;
  /** Fingerprint of a different key that the server presented in the last test. */
  refused_host_key_fingerprint?: string | null;
}

interface TunnelledRow {
  id: string;
  account_id: string;
  ssh_tunnel: Record<string, unknown> | null;
}

/** Encryption context of private keys. It names the account only: a key is generated before its row exists. */
export const sshKeyContext = (account_id: string) => `ssh_key:${account_id}`;

export const sealSshKey = (deps: Deps, account_id: string, private_key: string): string =>
  deps.secrets.seal(private_key, sshKeyContext(account_id));

/** @throws Error when this service did not encrypt it for this account */
export function openSshKey(deps: Deps, account_id: string, blob: string): SshPublicKey & { private_key: string } {
  const private_key = deps.secrets.open(blob, sshKeyContext(account_id));
  return { private_key, ...publicKeyOf(private_key) };
}

/**
 * The tunnel of a row's connections, or null. A key by reference is read at each use; `reach` records that before.
 * @throws ConfigurationError, RetryableError when there is no key
 */
export async function tunnelOf(
  deps: Deps,
  row: TunnelledRow,
  reach: (place: string) => Promise<void>,
): Promise<TunnelSettings | null> {
  const stored = row.ssh_tunnel as StoredTunnel | null;
  if (!stored?.enabled) return null;
  const { host, port, username } = stored;
  const host_key_fingerprint = stored.host_key_fingerprint ?? null;
  const place = { host, port, username, host_key_fingerprint };
  const given = privateKeyOf(deps, row.account_id, stored);
  if (!isReference(given)) return { ...place, private_key: given };
  const { value: private_key } = await readReferences(deps, { account_id: row.account_id, value: given, reach });
  noteValues(deps, row, secretPartsOf(private_key));
  requireKey(private_key, given);
  return { ...place, private_key };
}

function requireKey(private_key: string, reference: string): void {
  try {
    publicKeyOf(private_key);
  } catch {
    const message = `${reference} is not a private key for the SSH tunnel. It must be PEM or OpenSSH, without a passphrase`;
    throw new ConfigurationError('invalid_ssh_key', message);
  }
}

function privateKeyOf(deps: Deps, account_id: string, stored: StoredTunnel): string {
  try {
    return deps.secrets.open(stored.encrypted_private_key, sshKeyContext(account_id));
  } catch {
    throw new ConfigurationError('invalid_ssh_key', 'The SSH key of the tunnel cannot be decrypted. Set a new key');
  }
}

/** The private key of a row's tunnel, whole and line by line, for the redaction of logs. */
export function tunnelSecrets(deps: Deps, row: TunnelledRow): string[] {
  if (!row.ssh_tunnel) return [];
  try {
    return secretPartsOf(privateKeyOf(deps, row.account_id, row.ssh_tunnel as StoredTunnel));
  } catch {
    return [];
  }
}

const secretPartsOf = (private_key: string): string[] => [
  private_key,
  ...private_key.split('\n').filter((line) => line !== '' && !line.startsWith('-----')),
];

/**
 * Stores the first key that the tunnel's server presented; from then on only this key is accepted. A row that is not
 * stored yet, or whose tunnel now leads to a different server, does not change.
 * @throws ConfigurationError `ssh_host_key_changed` when a different key was stored in the meantime
 */
export async function pinHostKey(deps: Deps, row: TunnelledRow, fingerprint: string): Promise<void> {
  const { host, port } = row.ssh_tunnel as StoredTunnel;
  const stored = sql<string | null>`${accountConnectors.ssh_tunnel} ->> 'host_key_fingerprint'`;
  const same = and(
    eq(accountConnectors.id, row.id),
    sql`${accountConnectors.ssh_tunnel} @> ${JSON.stringify({ host, port })}::text::jsonb`,
  );
  const first = { host_key_fingerprint: fingerprint };
  await deps.db
    .update(accountConnectors)
    .set({ ssh_tunnel: sql`${accountConnectors.ssh_tunnel} || ${JSON.stringify(first)}::text::jsonb` })
    .where(and(same, isNull(stored)));
  const [now] = await deps.db.select({ fingerprint: stored }).from(accountConnectors).where(same);
  if (!now || now.fingerprint === fingerprint) return;
  throw new ConfigurationError(
    'ssh_host_key_changed',
    `The SSH server ${host}:${port} presents different host keys. Check that the host is a single server`,
  );
}
