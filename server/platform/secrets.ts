import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type ByteDigest, hmacDigest } from './digests.ts';
import { ApiError } from './errors.ts';
import { fieldCipher } from './field-encryption.ts';

/** The root keys of an installation, oldest first. Without rotation of the root there is one. */
export interface Roots {
  keys: readonly string[];
  /** Index of the root that encrypts and hashes. Later ones are only known, until all processes know them. */
  current: number;
  /** Index of the oldest root whose hashes are valid. All of them decrypt. */
  oldest: number;
}

/** Encrypts what must not be readable in the database. `context` binds a blob to its place: it does not open elsewhere. */
export interface Secrets {
  /** Identifies the current root without revealing it. */
  readonly key_id: string;
  /** Version of the current root, from 1. */
  readonly version: number;
  seal(plaintext: string, context: string): string;
  /** @throws ApiError 400 `invalid_secret` if the blob has another form or key, was changed, or belongs elsewhere */
  open(blob: string, context: string): string;
  /** HMAC-SHA256 with a key derived from the current root, in hexadecimal: for API keys, sessions, signatures. */
  hmac(purpose: string, value: string): string;
  /** What `hmac` returned under each root that is valid, that of the current root first: to look up or compare. */
  hmacs(purpose: string, value: string): string[];
  /** The version of the root under which `hmac` returned this, among all of them. Null: none. */
  versionOf(hmac: string, purpose: string, value: string): number | null;
  /**
   * The functions for the masks of an account: salted hash and encryption of a value. They stay with the first root, so
   * that values at destinations stay equal.
   */
  maskKeys(account_id: string): { salted: KeyedHash; encrypted(value: string | Uint8Array): string };
  /** Continues with other roots. */
  use(roots: Roots): void;
}

/** In hexadecimal; `digest` as bytes. */
interface KeyedHash {
  (value: string | Uint8Array): string;
  digest: ByteDigest;
}

/** Derived keys that are cached: there is one per account. */
const MAX_HMAC_KEYS = 1000;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const WRAPPED_KEY_BYTES = NONCE_BYTES + KEY_BYTES + TAG_BYTES;

/**
 * Envelope encryption with keys derived from the roots (each at least 32 characters). A blob has the form
 * `v1.<key id>.<wrapped data key>.<ciphertext>` in base64url. Each secret has a random data key, and both layers are
 * AES-256-GCM.
 */
export function openSecrets(first: string | Roots): Secrets {
  let roots: RootKey[] = [];
  let current: RootKey;
  let oldest = 0;
  const use = (given: Roots) => {
    roots = given.keys.map((key) => roots.find((one) => one.key === key) ?? rootKey(key));
    current = roots[given.current]!;
    oldest = given.oldest;
  };
  use(typeof first === 'string' ? { keys: [first], current: 0, oldest: 0 } : first);
  const hmac = (purpose: string, value: string) => hashWith(current, purpose, value);
  return {
    get key_id() {
      return current.id;
    },
    get version() {
      return roots.indexOf(current) + 1;
    },
    use,
    seal: (plaintext, context) => sealWith(current, plaintext, context),
    open: (blob, context) => openWith(roots, blob, context),
    hmac,
    hmacs: (purpose, value) => [
      hmac(purpose, value),
      ...roots
        .slice(oldest)
        .filter((one) => one !== current)
        .map((one) => hashWith(one, purpose, value)),
    ],
    versionOf: (hash, purpose, value) => {
      const index = roots.findLastIndex((one) => hashWith(one, purpose, value) === hash);
      return index < 0 ? null : index + 1;
    },
    maskKeys: (account_id) => ({
      salted: hasher(roots[0]!, `mask:${account_id}`),
      encrypted: fieldCipher(roots[0]!.key, account_id).encrypt,
    }),
  };
}

interface RootKey {
  key: string;
  id: string;
  wrappingKey: Buffer;
  hmacKey(purpose: string): Buffer;
}

function rootKey(key: string): RootKey {
  const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', key, 'data-pipelines', purpose, KEY_BYTES));
  const hmacKeys = new LRUCache<string, Buffer>({ max: MAX_HMAC_KEYS });
  return {
    key,
    id: derive('key-id').toString('hex').slice(0, 8),
    wrappingKey: derive('secrets'),
    hmacKey: (purpose) => {
      const known = hmacKeys.get(purpose) ?? derive(`hmac:${purpose}`);
      hmacKeys.set(purpose, known);
      return known;
    },
  };
}

function sealWith(root: RootKey, plaintext: string, context: string): string {
  const dataKey = randomBytes(KEY_BYTES);
  const wrapped = encrypt(root.wrappingKey, dataKey, `key:${root.id}:${context}`);
  const sealed = encrypt(dataKey, Buffer.from(plaintext, 'utf8'), context);
  return ['v1', root.id, wrapped.toString('base64url'), sealed.toString('base64url')].join('.');
}

function openWith(roots: readonly RootKey[], blob: string, context: string): string {
  const parts = /^v1\.([0-9a-f]{8})\.([\w-]+)\.([\w-]+)$/.exec(blob);
  if (!parts) throw invalid('The stored secret has an unknown form');
  const [, blobKeyId, wrapped, sealed] = parts as unknown as [string, string, string, string];
  const root = roots.find(({ id }) => id === blobKeyId);
  if (!root)
    throw invalid(
      'The secret was encrypted with another SECRET_KEY. Start the service with that key, or enter the secret again',
    );
  try {
    const wrappedKey = canonicalBytes(wrapped);
    if (wrappedKey.length !== WRAPPED_KEY_BYTES) throw new Error('wrong length');
    const dataKey = decrypt(root.wrappingKey, wrappedKey, `key:${root.id}:${context}`);
    return decrypt(dataKey, canonicalBytes(sealed), context).toString('utf8');
  } catch {
    throw invalid('The stored secret was changed or copied from another place. Enter the secret again');
  }
}

const hashWith = (root: RootKey, purpose: string, value: string) =>
  createHmac('sha256', root.hmacKey(purpose)).update(value, 'utf8').digest('hex');

/** Derives the key once: 0.3 µs instead of 1.5 µs per hash, for one hash per row. */
function hasher(root: RootKey, purpose: string): KeyedHash {
  const keyed = new Bun.CryptoHasher('sha256', root.hmacKey(purpose));
  const hash = (value: string | Uint8Array) => keyed.copy().update(value).digest('hex');
  return Object.assign(hash, { digest: hmacDigest(root.hmacKey(purpose)) });
}

const invalid = (message: string) => new ApiError(400, 'invalid_secret', message);

function encrypt(key: Buffer, plaintext: Buffer, context: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(context, 'utf8'));
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(key: Buffer, blob: Buffer, context: string): Buffer {
  if (blob.length < NONCE_BYTES + TAG_BYTES) throw new Error('too short');
  const decipher = createDecipheriv('aes-256-gcm', key, blob.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(context, 'utf8'));
  decipher.setAuthTag(blob.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(blob.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
}

/** Base64 decoders ignore unused bits of the last character: without this check some changed blobs would open. */
function canonicalBytes(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.toString('base64url') !== text) throw new Error('not canonical');
  return bytes;
}
