import type { WriteTarget } from '../../contract/connector.ts';
import { digitsOf, holdsDigits, INTEGER_DIGITS, widenedColumns } from '../../kits/sql/widening.ts';
import type { PgSession } from '../connection/session.ts';
import { identifier, relation } from '../connection/sql.ts';
import type { ExistingTable } from './tables.ts';
import { columnType, isBuiltin } from '../connection/types.ts';

const INTEGERS: Record<string, number> = { smallint: 2, integer: 4, bigint: 8 };
const TIMES = /^(timestamp|time)(\(\d\))? (with|without) time zone$/;

/** Types as format_type() writes them. */
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

/** In the open transaction. Rows stay; the table is written anew where the two types are stored in another way. */
export async function widenColumns(
  session: PgSession,
  target: WriteTarget & { schema: string },
  table: ExistingTable,
): Promise<void> {
  const widened = widenedColumns(target, {
    existing: (name) => table.types.get(name),
    wanted: columnType,
    widens,
  });
  if (widened.length === 0) return;
  const changes = widened.map(({ name, type }) => {
    const column = identifier(name);
    return `alter column ${column} type ${type} using ${column}::${type}`;
  });
  await session.query(`alter table ${relation(target.schema, target.table)} ${changes.join(', ')}`, [], { slow: true });
  for (const { name, type } of widened) table.types.set(name, type);
}
