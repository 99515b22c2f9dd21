import { digitsOf, holdsDigits, INTEGER_DIGITS } from '../../kits/sql/widening.ts';
import { isBuiltin } from '../connection/types.ts';

const INTEGERS: Record<string, number> = { smallint: 2, integer: 4, bigint: 8 };
const TIMES = /^(timestamp|time)(\(\d\))? (with|without) time zone$/;

/** A column of the first type can become one of the second without losing a value. Types as format_type() writes them. */
export function widens(from: string, to: string): boolean {
  if (from === to) return true;
  if (to === 'text') return isBuiltin(from);
  const [fromBytes, toBytes] = [INTEGERS[from], INTEGERS[to]];
  if (fromBytes && toBytes) return toBytes >= fromBytes;
  if (fromBytes && to.startsWith('numeric')) return fitsNumeric({ whole: INTEGER_DIGITS[fromBytes]!, scale: 0 }, to);
  if (fromBytes) return to === 'double precision' && fromBytes < 8;
  if (from === 'numeric' || from === 'text') return false;
  if (from.startsWith('numeric')) return to.startsWith('numeric') && fitsNumeric(digitsOf(from)!, to);
  if (from === 'real') return to === 'double precision';
  if (from.startsWith('character varying(')) {
    return to.startsWith('character varying') && (lengthOf(to) ?? Infinity) >= lengthOf(from)!;
  }
  if (from === 'date') return TIMES.test(to) && to.startsWith('timestamp') && precisionOf(to) === null;
  if (!TIMES.test(from) || from.replace(/\(\d\)/, '') !== to.replace(/\(\d\)/, '')) return false;
  return (precisionOf(to) ?? 6) >= (precisionOf(from) ?? 6);
}

const fitsNumeric = (from: { whole: number; scale: number }, to: string) => {
  const digits = digitsOf(to);
  return digits === null || holdsDigits(from, digits);
};
const lengthOf = (type: string) => digitsOf(type)?.whole ?? null;
const precisionOf = lengthOf;
