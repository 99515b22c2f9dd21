import { digitsOf, holdsDigits, INTEGER_DIGITS } from '../../kits/sql/widening.ts';
import { logicalType } from '../connection/types.ts';

const INTEGERS: Record<string, number> = { TINYINT: 1, SMALLINT: 2, INTEGER: 4, BIGINT: 8, HUGEINT: 16 };

/** A column of the first type can become one of the second without losing a value. Types as duckdb_columns() writes them. */
export function widens(from: string, to: string): boolean {
  if (from === to) return true;
  if (to === 'VARCHAR') return from !== 'BLOB' && !['array', 'json'].includes(logicalType(from));
  const [fromBytes, toBytes] = [INTEGERS[from], INTEGERS[to]];
  if (fromBytes && toBytes) return toBytes >= fromBytes;
  if (fromBytes && to.startsWith('DECIMAL')) {
    return holdsDigits({ whole: INTEGER_DIGITS[fromBytes]!, scale: 0 }, digitsOf(to)!);
  }
  if (from.startsWith('DECIMAL') && to.startsWith('DECIMAL')) return holdsDigits(digitsOf(from)!, digitsOf(to)!);
  if (from === 'FLOAT') return to === 'DOUBLE';
  if (fromBytes) return to === 'DOUBLE' && fromBytes < 8;
  return from === 'DATE' && (to === 'TIMESTAMP' || to === 'TIMESTAMP WITH TIME ZONE');
}
