import type { DuckDBConnection } from '@duckdb/node-api';
import { basename, dirname, join } from 'node:path';
import type { ConnectorContext } from '../../contract/connector.ts';
import { ConfigurationError, RetryableError } from '../../contract/errors.ts';
import { fileError, findFiles, folderBelow } from '../../kits/files/stores/local-files.ts';
import { Engine } from './engine.ts';
import { isLocked, type Place } from './failures.ts';

/** What the two sides have in common. */
export type FileContext = Pick<ConnectorContext<{ path: string }>, 'config' | 'filesRoot' | 'signal'>;

/** Another process may be at a commit; whoever takes longer has the file open for good. */
const LOCK_WAIT_MS = 30_000;
const LOCK_POLL_MS = 25;

/**
 * Who has which file open in this process. The system's locks tell processes apart and not their parts, and closing a
 * file anywhere in a process gives up the locks that the process has on it. So here a file is open for one writer, or
 * once for all of its readers.
 */
interface Use {
  readers: number;
  reading: Promise<Engine> | null;
  writing: boolean;
}
const uses = new Map<string, Use>();

/** @throws ConfigurationError unless it is a file below the root. */
export async function existingFile(ctx: FileContext): Promise<Place> {
  const [file] = await findFiles(ctx.filesRoot, ctx.config.path);
  if (!file) throw new ConfigurationError('file_not_found', `There is no file "${ctx.config.path}"`);
  return { path: file.path, name: ctx.config.path };
}

/** The same, but it may be missing; its folder is made. */
export async function fileToWrite(ctx: FileContext): Promise<Place & { exists: boolean }> {
  const name = ctx.config.path;
  try {
    return { ...(await existingFile(ctx)), exists: true };
  } catch (error) {
    if (!(error instanceof ConfigurationError) || error.code !== 'file_not_found') throw error;
  }
  if (name.endsWith('/')) throw new ConfigurationError('file_path_invalid', `"${name}" is not a file`);
  try {
    const folder = await folderBelow(ctx.filesRoot, dirname(name));
    return { path: join(folder, basename(name)), name, exists: false };
  } catch (error) {
    throw fileError(error, name);
  }
}

/** Runs `work` on a connection of its own to the file, opened for reading. */
export async function* reading<Item>(
  ctx: FileContext,
  { path, name }: Place,
  work: (connection: DuckDBConnection) => AsyncGenerator<Item>,
): AsyncGenerator<Item> {
  const engine = await turn(ctx, name, () => startReading(path));
  const connection = await engine.connect();
  const stop = () => connection.interrupt();
  ctx.signal.addEventListener('abort', stop, { once: true });
  try {
    ctx.signal.throwIfAborted();
    yield* work(connection);
  } finally {
    ctx.signal.removeEventListener('abort', stop);
    // A result that was not read to its end keeps the file open until another statement takes its place.
    await connection.run('SELECT 1').catch(() => {});
    connection.closeSync();
    await stopReading(path);
  }
}

/** Runs `work` while the file is attached to the engine for writing; nobody else has it open meanwhile. */
export async function writing<Result>(
  ctx: FileContext,
  { engine, path, name }: Place & { engine: Engine },
  work: () => Promise<Result>,
): Promise<Result> {
  await turn(ctx, name, () => startWriting(path, engine));
  try {
    return await work();
  } finally {
    await engine.detach().finally(() => uses.delete(path));
  }
}

/** Null: in use in this process. */
async function startReading(path: string): Promise<Engine | null> {
  const use = uses.get(path) ?? { readers: 0, reading: null, writing: false };
  if (use.writing) return null;
  uses.set(path, use);
  use.readers += 1;
  use.reading ??= openForReading(path);
  try {
    return await use.reading;
  } catch (error) {
    use.readers -= 1;
    if (use.readers === 0) uses.delete(path);
    throw error;
  }
}

async function openForReading(path: string): Promise<Engine> {
  const engine = await Engine.open(path, join(dirname(path), `.${basename(path)}.${process.pid}.reading.spill`));
  try {
    await engine.attach(true);
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}

async function stopReading(path: string): Promise<void> {
  const use = uses.get(path);
  if (!use) return;
  use.readers -= 1;
  if (use.readers > 0) return;
  // Closed before anybody can have it again.
  use.writing = true;
  try {
    const engine = await use.reading;
    // Closing alone would wait for results that JavaScript has not collected yet.
    await engine?.detach();
    await engine?.close();
  } finally {
    uses.delete(path);
  }
}

async function startWriting(path: string, engine: Engine): Promise<true | null> {
  if (uses.has(path)) return null;
  uses.set(path, { readers: 0, reading: null, writing: true });
  try {
    await engine.attach(false);
    return true;
  } catch (error) {
    uses.delete(path);
    throw error;
  }
}

/** Tries until it is our turn. Writers of this process are waited for as long as they take: each holds one commit. */
async function turn<Result>(ctx: FileContext, name: string, take: () => Promise<Result | null>): Promise<Result> {
  const start = performance.now();
  while (true) {
    ctx.signal.throwIfAborted();
    const late = performance.now() - start > LOCK_WAIT_MS;
    try {
      const taken = await take();
      if (taken !== null) return taken;
      if (late) throw new RetryableError('database_locked', `"${name}" is being read or written by another stream`);
    } catch (error) {
      if (!isLocked(error) || late) throw error;
    }
    await Bun.sleep(LOCK_POLL_MS);
  }
}
