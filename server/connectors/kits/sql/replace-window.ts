import type { TargetColumn, WriteTarget } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';

export type ReplacedWindow = NonNullable<WriteTarget['replace_window']>;

interface TypedTarget {
  table: string;
  columns: readonly TargetColumn[];
  /** The table's own columns, in the order of `columns`. */
  typed: readonly { type: string }[];
}

/**
 * The column that decides whether a row is in the window, and its type in the table.
 * @param typeOf the type that a newly created table would have
 * @throws ConfigurationError if the table stores the column with a type that changes values, since rows could then fall
 * into another window; and if the window has no limits, since that is an overwrite.
 */
export function windowColumn(
  { table, columns, typed }: TypedTarget,
  { column: name, start, end }: ReplacedWindow,
  typeOf: (column: TargetColumn) => string,
): { column: TargetColumn; type: string } {
  const index = columns.findIndex((one) => one.name === name);
  const [column, found] = [columns[index], typed[index]];
  if (!column || !found) throw new ConfigurationError('invalid_window', `Column "${name}" is not written to ${table}`);
  if (start === null && end === null) {
    throw new ConfigurationError('invalid_window', `The window of ${table} has neither start nor end`);
  }
  const exact = [typeOf(column), typeOf({ ...column, source_type: null })];
  if (exact.includes(found.type)) return { column, type: found.type };
  throw new ConfigurationError(
    'window_not_replaceable',
    `Column "${name}" of ${table} has the type ${found.type} instead of ${exact[0]}, so it cannot identify the rows of a date window`,
  );
}
