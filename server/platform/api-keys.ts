import { randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Days that a key is valid, by the clock of the database. */
export const API_KEY_DAYS = 90;

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_LENGTH = 12;
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const FORM = new RegExp(`^dpm_[0-9A-Za-z]{${ID_LENGTH}}_[0-9A-Za-z]{${SECRET_LENGTH + CHECKSUM_LENGTH}}$`);
const PREFIX_LENGTH = 'dpm_'.length + ID_LENGTH;

/**
 * A new key: `dpm_<id, 12 characters>_<secret, 43><CRC-32, 6>` in base 62, 66 characters, with 256 random bits in the
 * secret. The checksum distinguishes a typo from an unknown key without a query and lets scanners find leaked keys.
 */
export function makeApiKey(): string {
  const body = `dpm_${randomBase62(ID_LENGTH)}_${randomBase62(SECRET_LENGTH)}`;
  return body + checksum(body);
}

/** The readable start of a key, for lists. It does not reveal the key. Keys of another form show four characters. */
export const apiKeyPrefix = (key: string): string => key.slice(0, FORM.test(key) ? PREFIX_LENGTH : 4);

/** Whether a token has the form of a key but a wrong checksum: no such key exists, so no query is needed. */
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
