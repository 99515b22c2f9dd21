import { createHash } from 'node:crypto';
import { utils } from 'ssh2';

/** What may be told of a key pair. */
export interface SshPublicKey {
  /** A line for `authorized_keys`. */
  public_key: string;
  /** `SHA256:` and base64 without padding, as `ssh-keygen -l` shows it. */
  fingerprint: string;
}

/** A new ed25519 key pair; the private key in OpenSSH's own format. */
export function generateSshKey(comment: string): SshPublicKey & { private_key: string } {
  for (;;) {
    const { private: private_key } = utils.generateKeyPairSync('ed25519', { comment });
    // ssh2 cuts zero bytes off the start of the public half: one pair in 256 is one that nobody can read.
    if (!(utils.parseKey(private_key) instanceof Error)) return { private_key, ...publicKeyOf(private_key) };
  }
}

/** The public half of a private key. @throws Error when it is none that OpenSSH would take. */
export function publicKeyOf(private_key: string): SshPublicKey {
  const key = utils.parseKey(private_key);
  if (key instanceof Error) throw key;
  if (!key.isPrivateKey()) throw new Error('This is no private key');
  const blob = key.getPublicSSH();
  const digest = createHash('sha256').update(blob).digest('base64').replace(/=+$/, '');
  return {
    public_key: [key.type, blob.toString('base64'), key.comment].filter(Boolean).join(' '),
    fingerprint: `SHA256:${digest}`,
  };
}
