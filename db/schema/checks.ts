import { type SQL, sql } from 'drizzle-orm';
import { type AnyPgColumn, check } from 'drizzle-orm/pg-core';

/** One CHECK constraint for each column that is declared with `enum`. */
export function knownValues(table: string, columns: Record<string, AnyPgColumn>) {
  return Object.values(columns).flatMap((column) => {
    // A column has no `enumValues` yet while its table is being declared.
    const { enumValues } = (column as unknown as { config: { enumValues?: readonly string[] } }).config;
    return enumValues ? [check(`${table}_${column.name}_known`, sql`${column} in (${literals(enumValues)})`)] : [];
  });
}

/** Constants for the text of constraints, which takes no parameters. */
export const literals = (values: readonly string[]): SQL =>
  sql.raw(values.map((value) => `'${value.replaceAll("'", "''")}'`).join(', '));
