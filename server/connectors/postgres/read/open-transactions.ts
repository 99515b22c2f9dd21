import type { ReadRequest } from '../../contract/connector.ts';
import { cursorOf, fromClause } from '../../kits/sql/request.ts';
import type { BoundSource, OpenTransaction } from '../../kits/sql/cursors/safe-bound.ts';
import { isDate } from '../../kits/sql/streams.ts';
import type { PgSession } from '../connection/session.ts';
import { APPLICATION_NAME } from '../connection/client.ts';
import { identifier, literal, postgresNames, relation } from '../connection/sql.ts';

/** So much at the top is read again each time: a transaction is listed a moment after its start was noted. */
const REREAD_SECONDS = 5;
const REREAD_ROWS = 100;

const WRITES =
  "l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') and l.granted";
const HERE = '(select oid from pg_database where datname = current_database())';
/** Prepared transactions belong to no process. */
const IS_PREPARED = `l.pid is null and l.locktype = 'relation' and l.database = ${HERE} and ${WRITES}`;
/** What is open at the primary server, as far as a standby knows. */
const AT_PRIMARY = `
  select 'primary:' || xid, 'transaction ' || xid || ' of the primary server', null::timestamptz
    from txid_snapshot_xip(txid_current_snapshot()) xid where pg_is_in_recovery()`;

/**
 * Lists by `pg_locks`, which every role may read in full: an open transaction holds a lock on its own id. `xact_start` of
 * other roles needs pg_read_all_stats.
 */
export const openTransactions = (session: PgSession, request: ReadRequest): BoundSource => ({
  async mark() {
    const cursor = cursorOf(request);
    // The values first: whatever begins between the two statements is above them.
    const { rows: values } = await session.query(highestRows(request), { slow: true });
    const { rows } = await session.query(isDate(cursor.type) ? anyOpen() : writersOf(request));
    const open = rows.map(([id, about]): OpenTransaction => ({ id: id!, about: about! }));
    return {
      cursor: values[0]?.[0] ?? null,
      open,
      since: await since(
        session,
        cursor.type,
        rows.map((row) => row[2] ?? null),
      ),
    };
  },
  async stillOpen(ids) {
    if (ids.length === 0) return [];
    const { rows } = await session.query(
      `select distinct l.virtualtransaction from pg_locks l
        where l.virtualtransaction in (${ids.map(literal).join(', ')}) or (${IS_PREPARED})
        union all select id from (${AT_PRIMARY}) p(id) where id in (${ids.map(literal).join(', ')})`,
    );
    const open = new Set(rows.map(([id]) => id));
    // One that was listed by its own id may be prepared by now.
    return [...open].some((id) => !ids.includes(id!)) ? [...ids] : ids.filter((id) => open.has(id));
  },
});

/** Infinity and NaN are above everything, and not part of the order. */
function highestRows(request: ReadRequest): string {
  const { path, type, source_type } = cursorOf(request);
  const column = identifier(path[0]!);
  const from = `from ${fromClause(postgresNames, request)}`;
  const to = type === 'timestamp_tz' ? 'timestamptz' : type;
  if (type === 'date') return `select max(${column})::text ${from} where ${column} < 'infinity'`;
  if (isDate(type)) {
    return `select (max(${column}) - interval '${REREAD_SECONDS} seconds')::${to}::text ${from} where ${column} < 'infinity'`;
  }
  const isNumber = type === 'number' && `${column} <> 'NaN' and ${column}::text <> 'Infinity'`;
  const shown = source_type === 'numeric' ? 'trim_scale(min(c))' : 'min(c)';
  return `select ${shown}::text from (select ${column} c ${from}
    where ${isNumber || `${column} is not null`} order by ${column} desc limit ${REREAD_ROWS}) top`;
}

const ABOUT =
  "coalesce('process ' || l.pid || coalesce(' (' || nullif(a.application_name, '') || ')', ''), 'a prepared transaction')";

/**
 * The time of a transaction is that of its start, so one that has not written yet may do so with an old time. Not counted:
 * autovacuum, replication, and readers of this service and of pg_dump, which never write.
 */
const anyOpen = () => `
  select l.virtualtransaction, min(${ABOUT}), min(a.xact_start)
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
   where (${IS_PREPARED}) or (l.locktype = 'virtualxid' and l.granted and l.pid <> pg_backend_pid()
     and a.datid = ${HERE} and a.usesysid is not null and a.pid not in (select pid from pg_stat_replication)
     and (a.application_name not in (${literal(APPLICATION_NAME)}, 'pg_dump') or exists (
       select from pg_locks w where w.virtualtransaction = l.virtualtransaction and w.locktype = 'relation'
          and ${WRITES.replaceAll('l.', 'w.')})))
   group by 1 union all ${AT_PRIMARY}`;

/** Other cursors are drawn when a row is written, under a lock of the table. A view may show any table. */
function writersOf({ stream: { namespace, name, dataset_sql } }: ReadRequest): string {
  const isTable = namespace !== null && dataset_sql === undefined;
  const table = isTable ? `to_regclass(${literal(relation(namespace, name))})::oid` : 'null::oid';
  return `
  with recursive family(id) as (
    select c.oid from pg_class c where c.oid = ${table} and c.relkind in ('r', 'p')
     union select i.inhrelid from pg_inherits i join family f on i.inhparent = f.id)
  select l.virtualtransaction, min(${ABOUT}), min(a.xact_start)
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
   where l.locktype = 'relation' and l.database = ${HERE} and ${WRITES} and l.pid is distinct from pg_backend_pid()
     and (l.relation in (select id from family) or (not exists (select from family) and l.relation >= 16384))
   group by 1 union all ${AT_PRIMARY}`;
}

/** Times without a zone may be of a zone that is up to 12 hours behind. */
async function since(session: PgSession, type: string, starts: (string | null)[]): Promise<string | null> {
  const [first] = starts.toSorted((a, b) => (a ?? '').localeCompare(b ?? ''));
  if (first == null || !isDate(type as 'date')) return null;
  const to = type === 'timestamp_tz' ? 'timestamptz' : type === 'date' ? 'date' : 'timestamp';
  const margin = type === 'timestamp_tz' ? '5 seconds' : '12 hours 5 seconds';
  const { rows } = await session.query(`select (${literal(first)}::timestamptz - interval '${margin}')::${to}::text`);
  return rows[0]?.[0] ?? null;
}
