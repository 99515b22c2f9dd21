import { randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** How long a key is valid, counted by the database's clock. */
export const API_KEY_DAYS = 90;

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_LENGTH = 12;
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const FORM = new RegExp(`^dpm_[0-9A-Za-z]{${ID_LENGTH}}_[0-9A-Za-z]{${SECRET_LENGTH + CHECKSUM_LENGTH}}$`);
const PREFIX_LENGTH = 'dpm_'.length + ID_LENGTH;

/**
 * A new key: `dpm_<12 characters of id>_<43 of secret><6 of CRC-32>`, base 62, 66 characters, 256 random bits in the
 * secret. The checksum tells a typing error from an unknown key without a query, and lets scanners find leaked keys.
 */
export function makeApiKey(): string {
  const body = `dpm_${randomBase62(ID_LENGTH)}_${randomBase62(SECRET_LENGTH)}`;
  return body + checksum(body);
}

/** The readable start that lists show; never enough to use the key. Keys of another form show four characters. */
export const apiKeyPrefix = (key: string): string => key.slice(0, FORM.test(key) ? PREFIX_LENGTH : 4);

/** True when a token has the form of our keys but a wrong checksum: it cannot exist, so no query is needed. */
export function isMistyped(token: string): boolean {
  return FORM.test(token) && checksum(token.slice(0, -CHECKSUM_LENGTH)) !== token.slice(-CHECKSUM_LENGTH);
}

function randomBase62(length: number): string {
  return Array.from({ length }, () => BASE62[randomInt(BASE62.length)]).join('');
}

function checksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let digit = 0; digit < CHECKSUM_LENGTH; digit += 1) {
    text = BASE62[rest % BASE62.length] + text;
    rest = Math.floor(rest / BASE62.length);
  }
  return text;
}
