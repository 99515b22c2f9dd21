import type {
  ConnectorContext,
  ReadRequest,
  SharedSnapshot,
  SnapshotKeeper,
  StreamSchema,
} from '../../contract/connector.ts';
import { ConnectorError, RetryableError } from '../../contract/errors.ts';
import { SNAPSHOT_LOST } from '../../contract/snapshot.ts';
import { fromClause } from '../../kits/sql/request.ts';
import { PgSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { literal, postgresNames, relation } from '../connection/sql.ts';

type Context = ConnectorContext<PostgresSourceConfig>;
type Table = Pick<StreamSchema, 'namespace' | 'name'>;

/** One snapshot for all statements of a read. */
export const BEGIN = 'begin isolation level repeatable read read only';

/** How long a read waits for its table. A change of the table that waits for the keeper would wait for the read, too. */
const LOCK_SECONDS = 5;

/** The keeper is idle until the end of the run, which no default of the server or the role may cut short. */
const UNLIMITED = `select set_config(name, '0', true) from pg_catalog.pg_settings
  where name in ('idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout', 'lock_timeout')`;

/** The same name means another snapshot on another server, or after a failover. */
const SERVER = `select system_identifier::text, timeline_id::text, pg_is_in_recovery()::text, current_database()::text,
    pg_postmaster_start_time()::text
  from pg_control_system(), pg_control_checkpoint()`;

/** Exports a snapshot. The tables are locked before it, as TRUNCATE and rewrites would empty them for older snapshots. */
export async function keepSnapshot(ctx: Context, streams: readonly Table[]): Promise<SnapshotKeeper> {
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    const tables = await lockable(session, streams);
    await session.query(BEGIN);
    if (tables.length > 0) await session.query(`lock table ${tables.join(', ')} in access share mode`);
    return {
      snapshot: await exportSnapshot(session),
      check: async () => {
        try {
          await session.query('select 1');
        } catch (error) {
          throw lost(error instanceof Error ? error.message : 'the connection that held it has ended');
        }
      },
      close: () => session.close(),
    };
  } catch (error) {
    await session.close();
    throw error;
  }
}

/** The snapshot of an open transaction, which other sessions can join until it ends. The session may stay idle. */
export async function exportSnapshot(session: PgSession): Promise<SharedSnapshot> {
  const { rows } = await session.query('select pg_export_snapshot()');
  await session.query(UNLIMITED);
  return { name: rows[0]?.[0] ?? '', ...(await serverOf(session)) };
}

/** A view is not locked: its user may lack the rights on the tables below it. */
async function lockable(session: PgSession, streams: readonly Table[]): Promise<string[]> {
  const named = streams.map(({ namespace, name }) => `(${literal(namespace ?? 'public')}, ${literal(name)})`);
  if (named.length === 0) return [];
  const { rows } = await session.query(
    `select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where (n.nspname, c.relname) in (${named.join(', ')}) and c.relkind in ('r', 'p')
        and has_table_privilege(c.oid, 'select') order by 1, 2`,
  );
  return rows.map(([schema, table]) => relation(schema!, table!));
}

async function serverOf(session: PgSession): Promise<Record<string, string>> {
  const { rows } = await session.query(SERVER);
  const [[system_identifier, timeline, in_recovery, database, started_at] = []] = rows;
  const facts = { system_identifier, timeline, in_recovery, database, started_at };
  return Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, value ?? '']));
}

/**
 * Begins a transaction at a moment that another session, the keeper, has exported and holds. Its locks keep the tables as
 * they were until this transaction has locks of its own.
 * @throws RetryableError `snapshot_lost`
 */
export async function beginAt(session: PgSession, request: ReadRequest, at: SharedSnapshot): Promise<void> {
  await session
    .query(`${BEGIN}; set transaction snapshot ${literal(at.name)}; set local lock_timeout = '${LOCK_SECONDS}s'`)
    .catch(asLost(NOT_THERE));
  const server = await serverOf(session);
  const other = Object.keys(server).find((name) => at[name] !== server[name]);
  if (other !== undefined) throw lost(`this connection reached another server (${other} is ${server[other]})`);
  if (request.stream.dataset_sql !== undefined) return;
  await session.query(`select 1 from ${fromClause(postgresNames, request)} limit 0`).catch(asLost(['lock_timeout']));
}

/** How the server refuses a snapshot that it no longer has, by version. */
const NOT_THERE = ['invalid_value', 'not_possible', 'statement_refused'];

const asLost = (codes: readonly string[]) => (error: unknown) => {
  throw error instanceof ConnectorError && codes.includes(error.code) ? lost(error.message) : error;
};

const lost = (reason: string) =>
  new RetryableError(
    SNAPSHOT_LOST,
    `The snapshot of the tables cannot be read any more: ${reason}. A new one is opened`,
  );
