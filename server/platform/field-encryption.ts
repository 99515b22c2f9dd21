import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';

/** Encrypts field values for a destination and decrypts them with the same key. */
export interface FieldCipher {
  /** @param value text or its UTF-8 bytes; both give the same result */
  encrypt(value: string | Uint8Array): string;
  /** @throws Error if the value was changed, or encrypted for another account or with another key */
  decrypt(value: string): string;
}

const PREFIX = 'enc.v1.';
/** Matches results of `encrypt` anywhere in a text. */
export const ENCRYPTED = /enc\.v1\.[\w-]{38,}/g;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * The form is `enc.v1.` followed by nonce (12 bytes), ciphertext and tag (16 bytes) of AES-256-GCM in base64url. The key
 * is the first half of HKDF-SHA256(masterKey, salt `data-pipelines`, info `field-encryption:<account id>`, 64 bytes). The
 * nonce is HMAC-SHA256 of the value with the other half, truncated to 12 bytes: equal values give equal texts, so that
 * merges see no false changes and joins work. The price is that readers of the destination see which values are equal.
 */
export function fieldCipher(masterKey: string, account_id: string): FieldCipher {
  const keys = Buffer.from(hkdfSync('sha256', masterKey, 'data-pipelines', `field-encryption:${account_id}`, 64));
  const [key, nonceKey] = [keys.subarray(0, 32), keys.subarray(32)];
  return {
    encrypt(value) {
      const nonce = createHmac('sha256', nonceKey).update(value).digest().subarray(0, NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
      const bytes = [nonce, cipher.update(value), cipher.final(), cipher.getAuthTag()];
      return PREFIX + Buffer.concat(bytes).toString('base64url');
    },
    decrypt(value) {
      const bytes = Buffer.from(value.slice(PREFIX.length), 'base64url');
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      const parts = [decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()];
      return Buffer.concat(parts).toString('utf8');
    },
  };
}
