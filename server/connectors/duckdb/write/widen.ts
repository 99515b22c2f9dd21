import type { DuckDBConnection } from '@duckdb/node-api';
import type { WriteTarget } from '../../contract/connector.ts';
import { digitsOf, holdsDigits, INTEGER_DIGITS, widenedColumns } from '../../kits/sql/widening.ts';
import { execute } from '../connection/engine.ts';
import { identifier, relation } from '../connection/sql.ts';
import { columnType, logicalType } from '../connection/types.ts';

const INTEGERS: Record<string, number> = { TINYINT: 1, SMALLINT: 2, INTEGER: 4, BIGINT: 8, HUGEINT: 16 };

/** Types as duckdb_columns() writes them. */
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

/** In the open transaction; `existing` is column, in lower case, to type, and is kept up to date. */
export async function widenColumns(
  connection: DuckDBConnection,
  target: WriteTarget & { schema: string },
  existing: Map<string, string>,
): Promise<void> {
  const widened = widenedColumns(target, {
    existing: (name) => existing.get(name.toLowerCase()),
    wanted: columnType,
    widens,
  });
  for (const { name, type } of widened) {
    const table = relation(target.schema, target.table);
    await execute(connection, `ALTER TABLE ${table} ALTER COLUMN ${identifier(name)} SET DATA TYPE ${type}`);
    existing.set(name.toLowerCase(), type);
  }
}
