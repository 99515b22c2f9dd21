import { type ReplacedWindow, windowColumn } from '../../kits/sql/replace-window.ts';
import type { PgSession } from '../connection/session.ts';
import { identifier, literal } from '../connection/sql.ts';
import type { PgTarget } from './target.ts';
import { columnType } from '../connection/types.ts';

/** How long to wait for rows that another session has locked, e.g. an earlier attempt that has not ended yet. */
const LOCK_SECONDS = 30;

/** Deletes the rows of the window, in the open transaction. @returns how many @throws as `windowColumn` does */
export async function deleteWindow(session: PgSession, target: PgTarget, window: ReplacedWindow): Promise<number> {
  const column = identifier(window.column);
  const { type } = windowColumn(target, window, columnType);
  const limit = (operator: string, value: string | null) =>
    value === null ? [] : [`${column} ${operator} cast(${literal(value)} as ${type})`];
  const limits = [...limit('>=', window.start), ...limit('<', window.end)];
  await session.query(`set local lock_timeout = '${LOCK_SECONDS}s'`);
  const { count } = await session.query(`delete from ${target.relation} where ${limits.join(' and ')}`, { slow: true });
  await session.query('set local lock_timeout = 0');
  return count;
}
