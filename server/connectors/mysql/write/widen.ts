import { digitsOf, holdsDigits, INTEGER_DIGITS } from '../../kits/sql/widening.ts';
import { bareName, isSpatial, isUnsigned, sizeOf } from '../connection/types.ts';

const INTEGERS: Record<string, number> = { tinyint: 1, smallint: 2, mediumint: 3, int: 4, bigint: 8 };
const TEXTS: Record<string, number> = { tinytext: 255, text: 65_535, mediumtext: 16_777_215, longtext: 4_294_967_295 };
const BYTES: Record<string, number> = { tinyblob: 255, blob: 65_535, mediumblob: 16_777_215, longblob: 4_294_967_295 };

/** A column of the first type can become one of the second without losing a value. Types as COLUMN_TYPE has them. */
export function widens(from: string, to: string): boolean {
  if (from === to) return true;
  const [old, now] = [bareName(from), bareName(to)];
  const [fromBytes, toBytes] = [INTEGERS[old], INTEGERS[now]];
  // The 1 of a flag would stay 1, while new values are `true`.
  if (from.startsWith('tinyint(1)')) return toBytes !== undefined && !isUnsigned(to);
  if (fromBytes && toBytes) {
    if (isUnsigned(from) === isUnsigned(to)) return toBytes >= fromBytes;
    return isUnsigned(from) && toBytes > fromBytes;
  }
  if (fromBytes && now === 'decimal')
    return holdsDigits({ whole: INTEGER_DIGITS[fromBytes]!, scale: 0 }, digitsOf(to)!);
  if (old === 'decimal' && now === 'decimal') return holdsDigits(digitsOf(from)!, digitsOf(to)!);
  if (old === 'float') return now === 'double' || now === 'longtext';
  const [fromBlob, toBlob] = [byteLength(from, BYTES, /^(var)?binary$/), byteLength(to, BYTES, /^(var)?binary$/)];
  if (fromBlob !== null) return toBlob !== null && toBlob >= fromBlob;
  if (old === 'date' && now === 'datetime') return true;
  if (old === now && /^(datetime|timestamp|time)$/.test(old)) return fraction(to) >= fraction(from);
  const [fromText, toText] = [byteLength(from, TEXTS, /^(var)?char$/), byteLength(to, TEXTS, /^(var)?char$/)];
  if (toText === null) return false;
  return fromText === null ? now === 'longtext' && !isSpatial(from) && old !== 'bit' : toText >= fromText;
}

const fraction = (type: string) => (type.includes('(') ? sizeOf(type) : 0);

/** Null: the type is of another kind. */
function byteLength(type: string, kinds: Record<string, number>, bounded: RegExp): number | null {
  const name = bareName(type);
  if (bounded.test(name)) return sizeOf(type) * (kinds === TEXTS ? 4 : 1);
  return kinds[name] ?? null;
}
