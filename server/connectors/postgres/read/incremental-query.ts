import type { ConnectorContext, ReadRequest, StreamState } from '../../contract/connector.ts';
import { conditions, fieldByPath, fromClause, orderBy, resumeCondition, where } from './select.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { identifier } from '../connection/sql.ts';

/** The state once all rows without a cursor have been read. */
export const NULLS_READ: StreamState = { cursor: null, boundary: [], nulls_read: true };

/**
 * What an incremental read asks for. Rows whose cursor is NULL have no place in its order: the first read (no state)
 * begins with them and gives no state before they are through, so that they come once; later reads do not see them.
 */
export interface Increment {
  /** Null: to be left out. */
  nulls: string | null;
  /** In the order of the cursor, from the very cursor of the state on. */
  ordered: string;
  /** From the beginning: after `nulls` the state is `NULLS_READ`. */
  is_first: boolean;
}

export function incrementOf(request: ReadRequest, list: string): Increment {
  const { state, window, primary_key } = request;
  const cursor = fieldByPath(request, request.cursor_field!);
  const column = identifier(cursor.path[0]!);
  const select = `select ${list} from ${fromClause(request)}`;
  const filters = conditions(request);
  const is_first = state?.cursor == null && !window;
  const [from = `${column} is not null`] = resumeCondition(request);
  return {
    nulls: is_first && !state?.nulls_read ? `${select}${where([...filters, `${column} is null`])}` : null,
    ordered: `${select}${where([...filters, from])}${orderBy(cursor, primary_key)}`,
    is_first,
  };
}

export function warnOfNulls(
  ctx: ConnectorContext<PostgresSourceConfig>,
  { stream, cursor_field }: ReadRequest,
  rows: number,
) {
  if (rows === 0) return;
  ctx.warn(
    'null_cursor',
    `${rows} rows of ${stream.name} have no ${cursor_field!.join('.')}: they are read once, changes to them are not seen`,
  );
}
