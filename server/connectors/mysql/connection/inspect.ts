import type { LockHolder, SessionState } from '../../contract/connector.ts';
import { lockHolder } from '../../kits/sql/session.ts';
import type { QueryResult, Row } from './result.ts';
import type { ServerVersion } from './server-version.ts';

const PROCESS = (id: string) => `
  select command, coalesce(state, '') from information_schema.processlist where id = ${id}`;
/** The user may lack the privilege to see others; without InnoDB's tables a wait for a row is not known as one. */
const ROW_LOCKS = {
  MariaDB: (id: string) => `
    select l.lock_table, b.trx_mysql_thread_id, p.user, null, p.command, b.trx_started, p.info
      from information_schema.innodb_lock_waits w
      join information_schema.innodb_trx r on r.trx_id = w.requesting_trx_id
      join information_schema.innodb_trx b on b.trx_id = w.blocking_trx_id
      join information_schema.innodb_locks l on l.lock_id = w.requested_lock_id
      left join information_schema.processlist p on p.id = b.trx_mysql_thread_id
     where r.trx_mysql_thread_id = ${id} order by b.trx_started limit 3`,
  MySQL: (id: string) => `
    select concat(l.object_schema, '.', l.object_name), b.trx_mysql_thread_id, p.user, null, p.command, b.trx_started, p.info
      from performance_schema.data_lock_waits w
      join performance_schema.data_locks l on l.engine_lock_id = w.requesting_engine_lock_id
      join information_schema.innodb_trx r on r.trx_id = w.requesting_engine_transaction_id
      join information_schema.innodb_trx b on b.trx_id = w.blocking_engine_transaction_id
      left join information_schema.processlist p on p.id = b.trx_mysql_thread_id
     where r.trx_mysql_thread_id = ${id} order by b.trx_started limit 3`,
};
/** MariaDB shows the holders of metadata locks by a plugin only. */
const TABLE_LOCKS = (id: string) => `
    select concat(w.object_schema, '.', w.object_name), t.processlist_id, t.processlist_user, null,
           t.processlist_command, null, t.processlist_info
      from performance_schema.metadata_locks w
      join performance_schema.threads me on me.thread_id = w.owner_thread_id and me.processlist_id = ${id}
      join performance_schema.metadata_locks h on h.object_schema = w.object_schema and h.object_name = w.object_name
                                              and h.lock_status = 'GRANTED' and h.owner_thread_id <> w.owner_thread_id
      join performance_schema.threads t on t.thread_id = h.owner_thread_id
     where w.lock_status = 'PENDING' limit 3`;
/** States in which the server has sent its answer and waits for it to be taken. */
const SENDING = ['Writing to net', 'Sending to client'];

interface Asked {
  readonly version: ServerVersion;
  query(text: string): Promise<QueryResult>;
}

/** What the server shows of the session `id`, asked over `session`. */
export async function inspectSession(session: Asked, id: string): Promise<SessionState> {
  const { rows } = await session.query(PROCESS(id));
  const [command, state = ''] = rows[0] ?? [];
  if (command === undefined) return { state: 'lost', reason: 'The server no longer has the session' };
  // First, since MariaDB shows a lock wait for up to 100 ms after its end.
  if (command === 'Sleep' || SENDING.includes(state ?? '')) {
    return { state: 'lost', reason: `The server waits for this service (${state || command})` };
  }
  const isTable = /^Waiting for .*lock/i.test(state ?? '');
  const asked = isTable ? TABLE_LOCKS(id) : ROW_LOCKS[session.version.flavor](id);
  const waits = await session.query(asked).then(
    (found) => found.rows,
    () => [],
  );
  if (isTable || waits.length > 0) {
    return { state: 'blocked', on: waits[0]?.[0]?.replaceAll('`', '') ?? 'a table', holders: waits.map(holderOf) };
  }
  return { state: 'working', sign: state ?? '', must_advance: false };
}

const holderOf = ([, session, user, application, command, since, statement]: Row): LockHolder => {
  const state = command === 'Sleep' ? 'idle in transaction' : (command?.toLowerCase() ?? null);
  const kind = /^[\s(]*([A-Za-z]+)/.exec(statement ?? '')?.[1]?.toUpperCase() ?? null;
  return lockHolder([session ?? null, user ?? null, application ?? null, state, since ?? null, kind]);
};
