import type { Filter } from '../../server/connectors/contract/connector.ts';
import type { Filtering } from './cases.ts';
import { nameOf } from './canonical.ts';
import { type Dialect, hexOf, type Kind } from './kinds.ts';
import { type SourceTable, valueOf } from './source-table.ts';

const BYTES: Record<Dialect, { column(name: string): string; value(text: string): string }> = {
  postgres: { column: (name) => `convert_to(${name}, 'UTF8')`, value: (text) => `'\\x${hexOf(text)}'::bytea` },
  mysql: {
    column: (name) => `cast(convert(${name} using utf8mb4) as binary)`,
    value: (text) => `x'${hexOf(text)}'`,
  },
  duckdb: { column: (name) => `encode(${name})`, value: (text) => `unhex('${hexOf(text)}')` },
  sqlite: { column: (name) => `cast(${name} as blob)`, value: (text) => `x'${hexOf(text)}'` },
};
const SYMBOLS: Record<string, string> = { eq: '=', ne: '<>', gt: '>', lte: '<=' };

/** A filter of the service and the same condition in the source's SQL; null: the column has no filter. */
export function filterOf(
  table: SourceTable,
  { column, operator, value }: Filtering,
): { filter: Filter; sql: string } | null {
  const chosen = table.columns[column % table.columns.length];
  // A dot would be read as a path.
  if (!chosen || !chosen.kind.filters || chosen.name.includes('.')) return null;
  const name = nameOf(table.dialect, chosen.name);
  const field = chosen.name;
  if (operator === 'is_null' || operator === 'is_not_null') {
    const filter: Filter = { field, operator, value: null };
    return { filter, sql: `${name} is ${operator === 'is_null' ? '' : 'not '}null` };
  }
  const operand = valueOf(chosen.kind, value || 1, false);
  if (operand === null || operand.includes('\0')) return null;
  if (chosen.kind.form === 'boolean' && !/^(eq|ne|in)$/.test(operator)) return null;
  const { left, right } = sidesOf(table.dialect, chosen.kind, { name, operand });
  if (operator === 'in') return { filter: { field, operator, value: [operand] }, sql: `${left} in (${right})` };
  return { filter: { field, operator, value: operand }, sql: `${left} ${SYMBOLS[operator]} ${right}` };
}

function sidesOf(dialect: Dialect, kind: Kind, { name, operand }: { name: string; operand: string }) {
  if (kind.form !== 'text') return { left: name, right: kind.literal(operand) };
  const { column, value } = BYTES[dialect];
  return { left: column(name), right: value(operand) };
}
