import { createHash } from 'node:crypto';

// Loaded with its first use: processes start often, and most never need it.
const utils = () => (require('ssh2') as typeof import('ssh2')).utils;

/** The public part of a key pair. */
export interface SshPublicKey {
  /** A line for `authorized_keys`. */
  public_key: string;
  /** `SHA256:` and base64 without padding, as `ssh-keygen -l` shows it. */
  fingerprint: string;
}

/** A new ed25519 key pair. The private key has OpenSSH's own format. */
export function generateSshKey(comment: string): SshPublicKey & { private_key: string } {
  for (;;) {
    const { private: private_key } = utils().generateKeyPairSync('ed25519', { comment });
    // ssh2 drops zero bytes at the start of the public half, so one pair in 256 is unreadable: try again.
    if (!(utils().parseKey(private_key) instanceof Error)) return { private_key, ...publicKeyOf(private_key) };
  }
}

/** The public half of a private key. @throws Error if OpenSSH would not accept the private key */
export function publicKeyOf(private_key: string): SshPublicKey {
  const key = utils().parseKey(private_key);
  if (key instanceof Error) throw key;
  if (!key.isPrivateKey()) throw new Error('Not a private key');
  const blob = key.getPublicSSH();
  const digest = createHash('sha256').update(blob).digest('base64').replace(/=+$/, '');
  return {
    public_key: [key.type, blob.toString('base64'), key.comment].filter(Boolean).join(' '),
    fingerprint: `SHA256:${digest}`,
  };
}
