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
 * The column by which rows are in the window or not, and its type in the table.
 * @param typeOf what a table of ours would have for the column
 * @throws ConfigurationError when the table keeps other values than the source has, since its rows could be of another
 * window; and when the window has no limits: that would be all rows, and is overwrite's to do.
 */
export function windowColumn(
  { table, columns, typed }: TypedTarget,
  { column: name, start, end }: ReplacedWindow,
  typeOf: (column: TargetColumn) => string,
): { column: TargetColumn; type: string } {
  const index = columns.findIndex((one) => one.name === name);
  const [column, found] = [columns[index], typed[index]];
  if (!column || !found) throw new ConfigurationError('invalid_window', `${table} is not written a column "${name}"`);
  if (start === null && end === null) {
    throw new ConfigurationError('invalid_window', `No window of ${table} is named`);
  }
  const exact = [typeOf(column), typeOf({ ...column, source_type: null })];
  if (exact.includes(found.type)) return { column, type: found.type };
  throw new ConfigurationError(
    'window_not_replaceable',
    `The column "${name}" of ${table} has the type ${found.type} instead of ${exact[0]}, so the rows of a window of days cannot be identified by it`,
  );
}
