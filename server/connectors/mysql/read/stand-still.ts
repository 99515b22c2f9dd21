import { setTimeout as sleep } from 'node:timers/promises';
import type { ConnectorContext } from '../../contract/connector.ts';
import { ConfigurationError, ConnectorError } from '../../contract/errors.ts';
import { MysqlSession, withSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';
import { literal, relation } from '../connection/sql.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

/** In short attempts: all writers queue up behind a lock that waits. */
const LOCK_SECONDS = 2;
const PAUSE_MS = 500;
const PATIENCE_MS = 30_000;

/** A lock that keeps commits of the tables away. */
interface Lock {
  /** What the user needs for it. */
  right: string;
  take: readonly string[];
  release: string;
}

/** Waits for commits, not for the end of transactions. */
const BACKUP: Lock = {
  right: 'RELOAD',
  take: ['backup stage start', 'backup stage block_commit'],
  release: 'backup stage end',
};
const GLOBAL: Lock = { right: 'RELOAD', take: ['flush tables with read lock'], release: 'unlock tables' };
const lockOf = (database: string, tables: readonly string[]): Lock => ({
  right: 'LOCK TABLES',
  take: [`lock tables ${tables.map((table) => `${relation(database, table)} read`).join(', ')}`],
  release: 'unlock tables',
});

/**
 * Runs `work` while no commit changes the streams.
 * @returns the names of those that are tables
 * @throws ConfigurationError `snapshot_not_shared` where the server or the rights of this user do not allow that
 */
export async function standStill(
  ctx: Context,
  names: readonly string[],
  work: () => Promise<void>,
): Promise<readonly string[]> {
  return withSession(ctx, { phase: 'run' }, async (session) => {
    const tables = await tablesOf(session, ctx.config.database, names);
    // A view or a query may read any table.
    const own = tables.length === names.length ? [lockOf(ctx.config.database, tables)] : [];
    const hasStages = session.version.flavor === 'MariaDB' && session.version.number >= 1004;
    const locks = hasStages ? [BACKUP, ...own] : [...own, GLOBAL];
    await session.query(`set lock_wait_timeout = ${LOCK_SECONDS}`);
    for (const lock of locks) {
      if (!(await take(ctx, session, lock))) continue;
      try {
        await work();
      } finally {
        await session.query(lock.release);
      }
      return tables;
    }
    const rights = [...new Set(locks.map(({ right }) => right))].join(' or ');
    throw notShared(`this user may not lock them for the moment at which the run begins. GRANT ${rights} to the user`);
  });
}

/** False: the user may not. @throws ConfigurationError when writers hold the tables for too long */
async function take(ctx: Context, session: MysqlSession, lock: Lock): Promise<boolean> {
  for (const since = performance.now(); ; ) {
    try {
      for (const statement of lock.take) await session.query(statement, { slow: true });
      return true;
    } catch (error) {
      if (!(error instanceof ConnectorError)) throw error;
      if (error.code === 'permission_denied') return false;
      if (error.code !== 'lock_timeout') throw error;
      await session.query(lock.release).catch(() => {});
      if (performance.now() - since > PATIENCE_MS) {
        throw notShared(`transactions kept them from being locked for ${PATIENCE_MS / 1000} s`);
      }
    }
    await sleep(PAUSE_MS, undefined, { signal: ctx.signal });
  }
}

/** @throws ConfigurationError for tables that have no snapshots */
async function tablesOf(session: MysqlSession, database: string, names: readonly string[]): Promise<string[]> {
  const { rows } = await session.query(
    `select table_name, engine, (select transactions from information_schema.engines e where e.engine = t.engine)
      from information_schema.tables t where table_schema = ${literal(database)}
        and table_type = 'BASE TABLE' and table_name in (${names.map(literal).join(', ')})`,
  );
  const plain = rows.find(([, , transactions]) => transactions !== 'YES');
  if (plain) throw notShared(`${plain[0]} uses the engine ${plain[1]}, which has no transactions`);
  return rows.map(([name]) => name!);
}

const notShared = (why: string) =>
  new ConfigurationError('snapshot_not_shared', `The tables cannot be read at one moment: ${why}`);
