import type { DuckDBConnection } from '@duckdb/node-api';
import { ConfigurationError } from '../../contract/errors.ts';
import { type ReplacedWindow, windowColumn } from '../../kits/sql/replace-window.ts';
import type { Target } from '../../kits/sql/target.ts';
import { microsOf, timestampText } from '../../cells/timestamp-text.ts';
import { execute } from '../connection/engine.ts';
import { identifier, literal } from '../connection/sql.ts';
import { columnType } from '../connection/types.ts';

/** Conditions for a column to be within `[start, end)`; none for a side without a limit. @throws ConfigurationError */
export function limits(
  { column, isZoned }: { column: string; isZoned: boolean },
  { start, end }: Pick<ReplacedWindow, 'start' | 'end'>,
): string[] {
  const bound = (operator: string, value: string | null) => {
    if (value === null) return [];
    const micros = microsOf(value);
    if (Number.isNaN(micros)) throw new ConfigurationError('invalid_window', `"${value}" is not a date or timestamp`);
    const text = timestampText(micros);
    return [
      `${column} ${operator} ${isZoned ? 'TIMESTAMPTZ' : 'TIMESTAMP'} ${literal(isZoned ? text : text.slice(0, -3))}`,
    ];
  };
  return [...bound('>=', start), ...bound('<', end)];
}

/** Deletes the rows of the window, in the open transaction. @returns how many. @throws as `windowColumn` does */
export async function deleteWindow(
  connection: DuckDBConnection,
  target: Target,
  window: ReplacedWindow,
): Promise<number> {
  const { column, type } = windowColumn(target, window, columnType);
  const isZoned = type === 'TIMESTAMP WITH TIME ZONE';
  const conditions = limits({ column: identifier(column.name), isZoned }, window);
  return execute(connection, `DELETE FROM ${target.relation} WHERE ${conditions.join(' AND ')}`);
}
