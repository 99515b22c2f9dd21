import type { WriteTarget } from '../define.ts';
import { ConfigurationError } from '../errors.ts';
import type { PgSession } from './session.ts';
import { identifier, literal } from './sql.ts';
import type { Target } from './target.ts';
import { columnType } from './types.ts';

type Window = NonNullable<WriteTarget['replace_window']>;

/** How long rows that somebody else holds are waited for, such as an attempt before this one that is not yet gone. */
const LOCK_SECONDS = 30;

/**
 * The type of the column by which rows are in the window or not.
 * @throws ConfigurationError when the table keeps other values than the source has: its rows could be of another window.
 */
export function windowType({ columns, typed, table }: Target, { column }: Window): string {
  const index = columns.findIndex(({ name }) => name === column);
  const [wanted, found] = [columns[index], typed[index]];
  if (!wanted || !found) throw new ConfigurationError('invalid_window', `${table} is not written a column "${column}"`);
  const exact = [columnType(wanted), columnType({ ...wanted, source_type: null })];
  if (exact.includes(found.type)) return found.type;
  throw new ConfigurationError(
    'window_not_replaceable',
    `The column "${column}" of ${table} is of the type ${found.type} and not ${exact[0]}, so the rows of a window of days cannot be told in it`,
  );
}

/** Deletes the rows of the window, in the open transaction. @returns how many. */
export async function deleteWindow(session: PgSession, target: Target, window: Window): Promise<number> {
  const column = identifier(window.column);
  const type = windowType(target, window);
  const limit = (operator: string, value: string | null) =>
    value === null ? [] : [`${column} ${operator} cast(${literal(value)} as ${type})`];
  const limits = [...limit('>=', window.start), ...limit('<', window.end)];
  // A window without limits is none: that would be all rows, and is overwrite's to do.
  if (limits.length === 0) throw new ConfigurationError('invalid_window', `No window of ${target.table} is named`);
  await session.query(`set local lock_timeout = '${LOCK_SECONDS}s'`);
  const { count } = await session.query(`delete from ${target.relation} where ${limits.join(' and ')}`, [], {
    slow: true,
  });
  await session.query('set local lock_timeout = 0');
  return count;
}
