import { SchemaChangedError } from '../../contract/errors.ts';
import type { TargetColumn, WriteTarget } from '../../contract/writer.ts';

/** A destination's rules for column types. */
export interface ColumnTypes {
  /** The type of the existing column; undefined if there is none. */
  existing(name: string): string | undefined;
  /** The type that a new column would get. */
  wanted(column: TargetColumn): string;
  /** Whether a column can be changed from the first type to the second without losing values. */
  widens(from: string, to: string): boolean;
}

/**
 * The columns that need a wider type because their type has changed in the source. A type that differs for any other
 * reason was set by the table's owner: values are converted to it.
 * @throws SchemaChangedError if the column can neither hold the new values nor be widened.
 */
export function widenedColumns(target: WriteTarget, types: ColumnTypes): { name: string; type: string }[] {
  const widened: { name: string; type: string }[] = [];
  for (const column of target.columns) {
    const from = types.existing(column.name);
    const { previous } = column;
    if (from === undefined || !previous) continue;
    const to = types.wanted(column);
    if (types.wanted({ ...column, ...previous }) === to || from === to || types.widens(to, from)) continue;
    if (!types.widens(from, to)) {
      throw new SchemaChangedError(
        'column_type_incompatible',
        `${target.table}.${column.name} is ${from} and cannot hold ${to}, the new type in the source. Change the field's name or type, or overwrite the table`,
      );
    }
    widened.push({ name: column.name, type: to });
  }
  return widened;
}

/** Integer and fractional digits of `numeric(12,2)` and the like; null if not declared. */
export function digitsOf(type: string): { whole: number; scale: number } | null {
  const [, precision, scale = '0'] = /\((\d+)(?:,\s*(-?\d+))?\)/.exec(type) ?? [];
  return precision === undefined ? null : { whole: Number(precision) - Number(scale), scale: Number(scale) };
}

/** Whether the second type holds all digits of the first. */
export const holdsDigits = (from: { whole: number; scale: number }, to: { whole: number; scale: number }) =>
  to.whole >= from.whole && to.scale >= from.scale;

/** Maximum digits of an integer, by its size in bytes. */
export const INTEGER_DIGITS: Record<number, number> = { 1: 3, 2: 5, 3: 8, 4: 10, 8: 20, 16: 39 };
