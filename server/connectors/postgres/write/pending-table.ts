import type { ConnectorContext } from '../../contract/connector.ts';
import { shortHash } from '../../kits/sql/names.ts';
import { parsePending, pendingState, type PendingTable, PENDING_TABLE } from '../../kits/sql/publish/pending-table.ts';
import { type StateRow, STATE_TABLE } from '../../kits/sql/state-row.ts';
import type { PlacedTarget } from '../../kits/sql/target.ts';
import { APPLICATION_NAME } from '../connection/client.ts';
import { type PgSession, withSession } from '../connection/session.ts';
import type { PostgresDestinationConfig } from '../connection/settings.ts';
import { derivedName, relation } from '../connection/sql.ts';
import { LOCK_LIMIT, lockInAttempts, SHORT_ATTEMPT_MS } from './locks.ts';

type Context = ConnectorContext<PostgresDestinationConfig>;

/** The table beside the one of a stream, of one attempt alone. */
export function pendingOf(target: PlacedTarget): PendingTable {
  const { connection_id, stream_id, stream_run_id, fence, table } = target;
  const name = derivedName(table, `__new_${shortHash(connection_id, stream_id, stream_run_id, fence)}`);
  return { name, table, phase: 'loading' };
}

/** A stop gives a writer four seconds. */
const CLEAN_UP_MS = 3_000;

/** A worker that is frozen or cut off keeps its sessions, and their locks, until its server notices. */
const END_WRITERS = `
  select pg_terminate_backend(l.pid)
    from pg_locks l join pg_stat_activity a on a.pid = l.pid
   where l.locktype = 'relation' and l.relation = to_regclass($1) and l.mode <> 'AccessShareLock'
     and l.database = (select oid from pg_database where datname = current_database())
     and l.pid <> pg_backend_pid() and a.usename = current_user and a.application_name = $2`;

const DROP_PATIENCE_MS = 30_000;

/**
 * In the open transaction. A session of the writer that joins between the look and the lock is seen by the next look.
 * @throws RetryableError `lock_timeout` when others use the table for half a minute
 */
function dropPending(session: PgSession, schema: string, { name }: PendingTable): Promise<void> {
  const table = relation(schema, name);
  return lockInAttempts(session, `drop table if exists ${table}`, {
    attempt_ms: SHORT_ATTEMPT_MS,
    patience_ms: DROP_PATIENCE_MS,
    limit: LOCK_LIMIT,
    prepare: () => session.query(END_WRITERS, { values: [table, APPLICATION_NAME] }),
  });
}

/** Drops the table that an earlier attempt at the stream has left, in the transaction that claims the stream. */
export async function resumePending(session: PgSession, state: StateRow, { schema }: PlacedTarget): Promise<void> {
  const pending = parsePending(state.extra[PENDING_TABLE]);
  if (!pending) return;
  await dropPending(session, schema, pending);
  await state.note(pendingState(null));
}

interface Claims {
  schema: string;
  connection_id: string;
  streams: readonly { stream_id: string; fence: number }[];
}

/** Drops the tables that attempts with these fences, or lower ones, have left, in the open transaction. */
export async function discardPending(session: PgSession, { schema, connection_id, streams }: Claims): Promise<void> {
  const table = relation(schema, STATE_TABLE);
  const { rows } = await session.query('select 1 from pg_attribute where attrelid = to_regclass($1) and attname = $2', {
    values: [table, PENDING_TABLE],
  });
  // Nothing was opened here since this version has been running.
  if (rows.length === 0) return;
  for (const { stream_id, fence } of streams) {
    const of = `connection_id = $1 and stream_id = $2 and fence <= $3::bigint`;
    const values = [connection_id, stream_id, String(fence)];
    const found = await session.query(`select ${PENDING_TABLE} from ${table} where ${of} for update`, { values });
    const pending = parsePending(found.rows[0]?.[0]);
    if (!pending) continue;
    await dropPending(session, schema, pending);
    await session.query(`update ${table} set ${PENDING_TABLE} = null where ${of}`, { values });
  }
}

/**
 * The same for an attempt that has failed or was stopped, so that its own session and signal have ended. Never fails: the
 * next attempt to open the stream would drop the table as well.
 */
export async function discardOwn(ctx: Context, target: PlacedTarget): Promise<void> {
  const { schema, connection_id } = target;
  const signal = AbortSignal.timeout(CLEAN_UP_MS);
  await withSession({ ...ctx, signal }, { phase: 'run' }, async (session) => {
    await session.query(`begin; set local lock_timeout = '${CLEAN_UP_MS}ms'`);
    await discardPending(session, { schema, connection_id, streams: [target] });
    await session.query('commit');
  }).catch(() => {});
}
