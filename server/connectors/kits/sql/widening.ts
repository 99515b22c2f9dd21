import { SchemaChangedError } from '../../contract/errors.ts';
import type { TargetColumn, WriteTarget } from '../../contract/writer.ts';

/** What a destination says of its types. */
export interface ColumnTypes {
  /** The type of the column that is there; undefined: there is none. */
  existing(name: string): string | undefined;
  /** The type that a new column would get. */
  wanted(column: TargetColumn): string;
  /** A column of the first type can be made one of the second, and keeps all its values. */
  widens(from: string, to: string): boolean;
}

/**
 * The columns that need a wider type, since what the source writes into them is not what it was. A column whose type
 * differs for any other reason is its owner's: values are converted to it.
 * @throws SchemaChangedError when the column can neither hold the new values nor be widened.
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
        `${target.table}.${column.name} is ${from}, which cannot hold the ${to} that the source has now: give the field another name or type, or overwrite the table`,
      );
    }
    widened.push({ name: column.name, type: to });
  }
  return widened;
}

/** Precision and scale of `numeric(12,2)` and the like; null: none is declared. */
export function digitsOf(type: string): { whole: number; scale: number } | null {
  const [, precision, scale = '0'] = /\((\d+)(?:,\s*(-?\d+))?\)/.exec(type) ?? [];
  return precision === undefined ? null : { whole: Number(precision) - Number(scale), scale: Number(scale) };
}

/** The second holds all digits of the first. */
export const holdsDigits = (from: { whole: number; scale: number }, to: { whole: number; scale: number }) =>
  to.whole >= from.whole && to.scale >= from.scale;

/** Digits that an integer of so many bytes may have. */
export const INTEGER_DIGITS: Record<number, number> = { 1: 3, 2: 5, 3: 8, 4: 10, 8: 20, 16: 39 };
