import type { DuckDBConnection } from '@duckdb/node-api';
import { lstat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ConnectorContext } from '../../contract/connector.ts';
import { ConfigurationError, RetryableError } from '../../contract/errors.ts';
import { fileError, findFiles, folderBelow } from '../../kits/files/stores/local-files.ts';
import { Engine } from './engine.ts';
import { duckDbError, isLocked, type Place } from './failures.ts';

/** The part of the context that source and destination share. */
export type FileContext = Pick<ConnectorContext<{ path: string }>, 'config' | 'filesRoot' | 'signal'>;

/** Covers a commit of another process. A lock held longer is unlikely to be released soon. */
const LOCK_WAIT_MS = 30_000;
const LOCK_POLL_MS = 25;

/**
 * How this process uses a file. The operating system locks files per process, and closing a file anywhere in a process
 * releases all of its locks on that file. So within this process a file is open for one writer, or once for all
 * readers.
 */
interface Use {
  readers: number;
  reading: Promise<Engine> | null;
  writing: boolean;
}
const uses = new Map<string, Use>();

/** @throws ConfigurationError unless the path is a file below the root. */
export async function existingFile(ctx: FileContext): Promise<Place> {
  const [file] = await findFiles(ctx.filesRoot, ctx.config.path);
  if (!file) throw new ConfigurationError('file_not_found', `File "${ctx.config.path}" does not exist`);
  return { path: file.path, name: ctx.config.path };
}

/** Like `existingFile`, but the file may be missing. Creates its folder. */
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
    const path = join(folder, basename(name));
    await refuseLink(path, name);
    return { path, name, exists: false };
  } catch (error) {
    throw fileError(error, name);
  }
}

/** A link to a missing file passes for a missing file, and DuckDB would create the file that it leads to. */
async function refuseLink(path: string, name: string): Promise<void> {
  const found = await lstat(path).catch(() => null);
  if (found?.isSymbolicLink()) {
    throw new ConfigurationError('path_outside_root', `The path "${name}" is a link to a file that does not exist`);
  }
}

/** Runs `work` on a separate read-only connection to the file. */
export async function* reading<Item>(
  ctx: FileContext,
  place: Place,
  work: (reader: { connection: DuckDBConnection; engine: Engine }) => AsyncGenerator<Item>,
): AsyncGenerator<Item> {
  const { close, ...reader } = await openReader(ctx, place);
  try {
    yield* work(reader);
  } finally {
    await close();
  }
}

/** A separate read-only connection to the file, to which nothing can be written until it is closed. */
export async function openReader(
  ctx: FileContext,
  { path, name }: Place,
): Promise<{ connection: DuckDBConnection; engine: Engine; close(): Promise<void> }> {
  const engine = await whenFree(ctx, name, () => startReading(path));
  const connection = await engine.connect();
  const stop = () => connection.interrupt();
  ctx.signal.addEventListener('abort', stop, { once: true });
  const close = async () => {
    ctx.signal.removeEventListener('abort', stop);
    // An unfinished result keeps the file open until another statement replaces it.
    await connection.run('SELECT 1').catch(() => {});
    connection.closeSync();
    await stopReading(path);
  };
  if (ctx.signal.aborted) await close();
  ctx.signal.throwIfAborted();
  return { connection, engine, close };
}

/** Keeps the file open, so that nothing can be written to it. @returns how to let go of it */
export async function openForReaders(ctx: FileContext, { path, name }: Place): Promise<() => Promise<void>> {
  await whenFree(ctx, name, () => startReading(path));
  let closing: Promise<void> | null = null;
  return () => (closing ??= stopReading(path));
}

/** A connection to a file, of which messages may tell the name. */
export interface Opened {
  connection: DuckDBConnection;
  place: Place;
}

/** Runs `work` on a read-only connection to the file. */
export async function once<Result>(ctx: FileContext, work: (opened: Opened) => Promise<Result>): Promise<Result> {
  const file = await existingFile(ctx);
  try {
    const results = reading(ctx, file, async function* ({ connection }) {
      yield await work({ connection, place: file });
    });
    for await (const result of results) return result;
    throw new Error('the database was not opened');
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw duckDbError(error, file);
  }
}

/**
 * Runs `work` while the file is attached to the engine for exclusive writing, and again, from the file as it was, if it runs
 * out of memory: a commit that fails leaves an attached file that cannot be used any more.
 */
export async function writing<Result>(
  ctx: FileContext,
  { engine, path, name }: Place & { engine: Engine },
  work: () => Promise<Result>,
): Promise<Result> {
  const result = await engine.withMemory(async () => {
    await whenFree(ctx, name, () => startWriting(path, engine));
    try {
      return await work();
    } catch (error) {
      await stopWriting(path, engine);
      throw error;
    }
  });
  await stopWriting(path, engine);
  return result;
}

/** Null: the file is being written in this process. */
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
  // Blocks other uses until the file is closed.
  use.writing = true;
  try {
    const engine = await use.reading;
    // Closing without detaching would wait for results that are not garbage-collected yet.
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

const stopWriting = (path: string, engine: Engine) => engine.detach().finally(() => uses.delete(path));

/** Retries `take` until the file is free or the timeout expires. */
async function whenFree<Result>(ctx: FileContext, name: string, take: () => Promise<Result | null>): Promise<Result> {
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
