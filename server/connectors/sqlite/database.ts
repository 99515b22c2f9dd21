import { Database } from 'bun:sqlite';
import { datasetClause } from '../kits/sql/datasets.ts';
import type { ConnectorContext, StreamSchema } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { findFiles } from '../kits/files/stores/local-files.ts';
import { isBusy, sqliteError } from './failures.ts';
import type { SqliteSourceConfig } from './settings.ts';

export type Context = ConnectorContext<SqliteSourceConfig>;

/** A lock that is held for longer fails the attempt, which is retried later. */
const LOCK_WAIT_MS = 5_000;
const LOCK_POLL_MS = 20;

export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** The rows of a stream, under the name `t`. */
export const fromClause = ({ name, dataset_sql }: StreamSchema) =>
  dataset_sql === undefined ? `${identifier(name)} t` : datasetClause(dataset_sql, 't');

/** Rows that are passed over without a pause. */
export const BREATH_ROWS = 5_000;

/** Yields to other work: SQLite runs in this thread, so everything else would wait for a whole scan. */
export const breathe = () => new Promise<void>((resolve) => setImmediate(resolve));

/**
 * Runs `work` on one snapshot of the database, whatever is written meanwhile.
 * @throws ConnectorError, or the signal's reason
 */
export async function* withSnapshot<Item>(
  ctx: Context,
  work: (database: Database) => AsyncGenerator<Item>,
): AsyncGenerator<Item> {
  const database = await openSnapshot(ctx);
  try {
    yield* work(database);
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw sqliteError(error, ctx.config.path);
  } finally {
    database.close(true);
  }
}

/** A connection in a transaction that reads. @throws as withSnapshot */
export async function openSnapshot(ctx: Context): Promise<Database> {
  ctx.signal.throwIfAborted();
  const [file] = await findFiles(ctx.filesRoot, ctx.config.path);
  if (!file) throw new ConfigurationError('file_not_found', `File "${ctx.config.path}" does not exist`);
  let database: Database | undefined;
  try {
    database = new Database(file.path, { readonly: true, safeIntegers: true });
    // Views of an untrusted file must not call functions with side effects.
    database.run('pragma trusted_schema = off; pragma query_only = on; pragma busy_timeout = 0');
    await beginRead(ctx, database);
    return database;
  } catch (error) {
    database?.close(true);
    ctx.signal.throwIfAborted();
    throw sqliteError(error, ctx.config.path);
  }
}

/** The result of `work` on a snapshot. @throws as withSnapshot */
export async function once<Result>(ctx: Context, work: (database: Database) => Promise<Result>): Promise<Result> {
  const results = withSnapshot(ctx, async function* (database) {
    yield await work(database);
  });
  for await (const result of results) return result;
  throw new Error('the database was not opened');
}

/** The first read takes the snapshot. Waiting for a lock inside SQLite would block the whole process. */
async function beginRead(ctx: Context, database: Database): Promise<void> {
  const start = performance.now();
  database.run('begin');
  while (true) {
    try {
      database.query('select count(*) from sqlite_schema').get();
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() - start > LOCK_WAIT_MS) throw error;
    }
    await Bun.sleep(LOCK_POLL_MS);
    ctx.signal.throwIfAborted();
  }
}
