import { type ByteDigest, sha256Digest } from '../../platform/digests.ts';

/** Replaces a redacted value. Null stays null, so that missing values remain visible. */
export const REDACTION = '***';

/** Masks a value, given as text or as its UTF-8 bytes with the same result. */
export interface Mask {
  (cell: string | Uint8Array): string;
  /** The result is the hexadecimal form of this digest. */
  digest?: ByteDigest;
}

/** The masks that need no key, by their names. */
export const KEYLESS_MASKS: Readonly<Record<string, Mask>> = {
  redact: () => REDACTION,
  hash_sha256: Object.assign((cell: string | Uint8Array) => Bun.SHA256.hash(cell, 'hex'), { digest: sha256Digest() }),
};
