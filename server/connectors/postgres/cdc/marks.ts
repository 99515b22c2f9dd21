import type { ConnectorContext, LogMark, StreamState } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { fullLsn, isLsn, lsnValue } from '../connection/lsn.ts';
import { type PgSession, withSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { literal } from '../connection/sql.ts';

type Table = { namespace: string | null; name: string };

const PREFIX = 'data-pipelines-mark';

export const isMark = ({ prefix }: { prefix: string }): boolean => prefix === PREFIX;

/** Older servers decode their log without messages: states of idle tables then take longer. */
export async function sendsMessages(session: PgSession): Promise<boolean> {
  const { rows } = await session.query("select current_setting('server_version_num')::int >= 140000");
  return rows[0]?.[0] === 't';
}

/** Writes a message to the log. Transactions that have written before it and are still open are counted first. */
export const markLog = (ctx: ConnectorContext<PostgresSourceConfig>, tables: readonly Table[]): Promise<LogMark> =>
  withSession(ctx, { phase: 'setup' }, async (session) => {
    const open_writers = await countWriters(session, tables);
    const { rows } = await session.query(
      `begin; set local synchronous_commit = 'local'; select pg_logical_emit_message(true, '${PREFIX}', '')::text`,
    );
    const position = rows[0]![0]!;
    await session.query('commit');
    return { position: fullLsn(position), open_writers };
  });

/** A transaction keeps the locks of its writes, also once it is prepared. Partitions have locks of their own. */
async function countWriters(session: PgSession, tables: readonly Table[]): Promise<number> {
  if (tables.length === 0) return 0;
  const names = tables.map(({ namespace, name }) => `(${literal(namespace ?? 'public')}, ${literal(name)})`);
  const { rows } = await session.query(
    `with recursive t (oid) as (
       select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where (n.nspname, c.relname) in (${names.join(', ')})
       union select i.inhrelid from pg_inherits i join t on i.inhparent = t.oid)
     select count(distinct l.virtualtransaction) from pg_locks l join t on t.oid = l.relation
      where l.locktype = 'relation' and l.granted and l.pid is distinct from pg_backend_pid()
        and l.database = (select oid from pg_database where datname = current_database())
        and l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`,
  );
  return Number(rows[0]![0]);
}

export function coversLsn({ cursor }: StreamState, position: string): boolean {
  if (!isLsn(position)) {
    throw new ConfigurationError('invalid_cursor', `"${position}" is not an LSN such as 00000000/0195F1A8`);
  }
  return cursor !== null && isLsn(cursor) && lsnValue(cursor) >= lsnValue(position);
}
