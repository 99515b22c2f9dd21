import type { ReadRequest } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { cursorOf, fromClause, where } from '../../kits/sql/request.ts';
import type { BoundSource, Mark, OpenTransaction } from '../../kits/sql/cursors/safe-bound.ts';
import { isDate } from '../../kits/sql/streams.ts';
import type { MysqlSession } from '../connection/session.ts';
import { literal, mysqlNames } from '../connection/sql.ts';
import { columnOf, textSql } from './cell-sql.ts';
import { hasNoCursor } from './select.ts';

/** So much at the top is read again each time: a statement notes its time before its transaction is listed. */
const REREAD_SECONDS = 5;
const REREAD_ROWS = 100;
/** The server renews its list at most so often. */
const LIST_AGE_MS = 110;
const MAX_LOOKS = 5;

const ID = "concat(trx_mysql_thread_id, ' ', trx_started)";
/** Times and numbers are drawn by the statement that writes them, which holds a lock from then on. */
const WRITES = '(trx_lock_structs > 0 or trx_rows_modified > 0) and trx_is_read_only = 0';

/** Lists by `innodb_trx`, which needs the privilege PROCESS. `begin` starts a transaction that is itself on the list. */
export const openTransactions = (
  session: MysqlSession,
  { request, keepZeroDates, begin }: { request: ReadRequest; keepZeroDates: boolean; begin(): Promise<void> },
): BoundSource => ({
  async mark() {
    await begin();
    const { rows: values } = await session.query(highestRows(request, keepZeroDates), { slow: true });
    const cursor = values[0]?.[0] ?? null;
    const found = (await untilListed(session)) ? await listed(session, request) : { open: [], since: null };
    await session.query('commit');
    return { cursor, ...found };
  },
  async stillOpen(ids) {
    if (ids.length === 0) return [];
    const { rows } = await session.query(
      `select ${ID} from information_schema.innodb_trx where ${ID} in (${ids.map(literal).join(', ')})`,
    );
    return rows.map(([id]) => id!);
  },
});

function highestRows(request: ReadRequest, keepZeroDates: boolean): string {
  const cursor = cursorOf(request);
  const column = columnOf(cursor);
  const rest = ` from ${fromClause(mysqlNames, request)}${where([`not (${hasNoCursor(cursor, keepZeroDates)})`])}`;
  const text = textSql(cursor, keepZeroDates);
  if (isDate(cursor.type)) {
    const highest = `max(${column})${cursor.type === 'date' ? '' : ` - interval ${REREAD_SECONDS} second`}`;
    return `select ${text} from (select ${highest} ${column}${rest}) newest`;
  }
  return `select ${text} from (
    select ${column}${rest} order by ${column} desc limit ${REREAD_ROWS}) newest order by ${column} limit 1`;
}

/** A list without the own transaction is older than that. False: it never shows up, since no table is InnoDB's. */
async function untilListed(session: MysqlSession): Promise<boolean> {
  for (let look = 0; look < MAX_LOOKS; look++) {
    const { rows } = await session.query(
      'select 1 from information_schema.innodb_trx where trx_mysql_thread_id = connection_id()',
    );
    if (rows.length > 0) return true;
    await Bun.sleep(LIST_AGE_MS);
  }
  return false;
}

/** False: the user lacks the privilege PROCESS. */
export async function canListTransactions(session: MysqlSession): Promise<boolean> {
  try {
    await session.query('select 1 from information_schema.innodb_trx limit 1');
    return true;
  } catch (error) {
    const translated = session.translate(error);
    if (translated instanceof ConfigurationError && translated.code === 'permission_denied') return false;
    throw translated;
  }
}

async function listed(session: MysqlSession, request: ReadRequest): Promise<Pick<Mark, 'open' | 'since'>> {
  const { type } = cursorOf(request);
  const { rows } = await session.query(
    `select ${ID}, concat('process ', trx_mysql_thread_id), convert_tz(trx_started, 'SYSTEM', '+00:00') - interval ${
      type === 'timestamp_tz' ? 5 : 43_205
    } second from information_schema.innodb_trx where ${WRITES} and trx_mysql_thread_id <> connection_id()`,
  );
  const open = rows.map(([id, about]): OpenTransaction => ({ id: id!, about: about! }));
  const [first] = rows.map((row) => row[2] ?? '').toSorted();
  if (!first || !isDate(type)) return { open, since: null };
  return { open, since: type === 'date' ? first.slice(0, 10) : type === 'timestamp_tz' ? `${first}+00` : first };
}
