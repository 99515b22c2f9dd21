import { Database } from 'bun:sqlite';
import { datasetClause } from '../kits/sql/datasets.ts';
import type { ConnectorContext, StreamSchema } from '../contract/connector.ts';
import { ConfigurationError } from '../contract/errors.ts';
import { findFiles } from '../kits/files/stores/local-files.ts';
import { isBusy, sqliteError } from './failures.ts';
import type { SqliteSourceConfig } from './settings.ts';

export type Context = ConnectorContext<SqliteSourceConfig>;

/** Somebody's write takes no longer, or the attempt is better made later. */
const LOCK_WAIT_MS = 5_000;
const LOCK_POLL_MS = 20;

export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** Where a stream's rows are, under the name `t`. */
export const fromClause = ({ name, dataset_sql }: StreamSchema) =>
  dataset_sql === undefined ? `${identifier(name)} t` : datasetClause(dataset_sql, 't');

/** The caller's turn ends: SQLite works in this thread, so others would wait for all of a scan. */
export const breathe = () => new Promise<void>((resolve) => setImmediate(resolve));

/**
 * Runs `work` on one snapshot of the database: what it reads is of one moment, whoever writes meanwhile.
 * @throws ConnectorError by what is wrong, or the signal's reason.
 */
export async function* withSnapshot<Item>(
  ctx: Context,
  work: (database: Database) => AsyncGenerator<Item>,
): AsyncGenerator<Item> {
  ctx.signal.throwIfAborted();
  const [file] = await findFiles(ctx.filesRoot, ctx.config.path);
  if (!file) throw new ConfigurationError('file_not_found', `There is no file "${ctx.config.path}"`);
  let database: Database | undefined;
  try {
    database = new Database(file.path, { readonly: true, safeIntegers: true });
    // A file is not trusted to call functions with side effects out of its views.
    database.run('pragma trusted_schema = off; pragma query_only = on; pragma busy_timeout = 0');
    await beginRead(ctx, database);
    yield* work(database);
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw sqliteError(error, ctx.config.path);
  } finally {
    database?.close(true);
  }
}

/** The snapshot is taken by the first read. SQLite's own waiting for a lock would hold up the whole process. */
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
