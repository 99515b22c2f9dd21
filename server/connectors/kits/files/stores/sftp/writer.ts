import { Writable } from 'node:stream';
import { callbackify } from 'node:util';
import { ConfigurationError, ConnectorError } from '../../../../contract/errors.ts';
import type { FolderWriter, NewFile } from '../folder-writer.ts';
import type { SftpContext, SftpSession } from './session.ts';
import { missing, pool, REQUEST_BYTES } from './sessions.ts';

/** Written at once, in requests that are on their way together. */
const BLOCK_BYTES = 1 << 20;

/** Folders on an SFTP server. `scratch`: an existing folder of this machine. */
export function sftpFolders(ctx: SftpContext, scratch: string): FolderWriter {
  const use = <Result>(work: (session: SftpSession) => Promise<Result>) => pool.use(ctx, work);
  return {
    names: (folder) =>
      use(async (session) => {
        const names = (await session.list(folder)).map(({ filename }) => filename);
        return names.filter((name) => name !== '.' && name !== '..');
      }),
    read: (path) => use((session) => readText(session, path).catch(missing)),
    write: (path, text) => use((session) => writeText(session, path, text)),
    claimName: (from, to) =>
      use(async (session) => {
        try {
          await session.rename(from, to);
          return true;
        } catch (error) {
          // The protocol has no code for a name that is taken.
          if (isRefusal(error) && (await exists(session, to))) return false;
          throw error;
        }
      }),
    replace: (from, to) => use((session) => replaceFile(session, from, to)),
    remove: (path) => use((session) => removeFile(session, path)),
    discard: (path) => use((session) => removeFile(session, path)),
    sync: (folder) => use((session) => syncFolder(session, folder)),
    create: (path) => createFile(ctx, path, scratch),
  };
}

/** Creates a folder and those above it, unless they exist. @throws ConfigurationError if a file has the name */
export async function ensureFolder(session: SftpSession, path: string): Promise<void> {
  const found = await session.stat(path).catch(missing);
  if (found?.isDirectory()) return;
  if (found) throw new ConfigurationError('file_path_invalid', `"${path}" on the server is not a folder`);
  const above = path.includes('/') ? path.replace(/\/[^/]*$/, '') : '';
  if (above !== '' && above !== '.') await ensureFolder(session, above);
  try {
    await session.makeFolder(path);
  } catch (error) {
    // Another attempt may have been faster.
    if (!(isRefusal(error) && (await exists(session, path)))) throw error;
  }
}

/** Whether the server has refused a request: the session goes on. */
const isRefusal = (error: unknown) =>
  error instanceof ConfigurationError || (error instanceof ConnectorError && error.code === 'file_error');

const isNotOffered = (error: unknown) => error instanceof ConfigurationError && error.code === 'sftp_not_offered';

const exists = async (session: SftpSession, path: string) => (await session.stat(path).catch(missing)) !== null;

async function removeFile(session: SftpSession, path: string): Promise<void> {
  await session.remove(path).catch(missing);
}

async function readText(session: SftpSession, path: string): Promise<string> {
  const handle = await session.openFile(path);
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const part = Buffer.allocUnsafe(REQUEST_BYTES);
    const got = await session.read(path, handle, part, at);
    if (got === 0) break;
    parts.push(part.subarray(0, got));
    at += got;
  }
  await session.closeFile(path, handle);
  return Buffer.concat(parts).toString('utf8');
}

async function writeText(session: SftpSession, path: string, text: string): Promise<void> {
  const handle = await session.openNew(path, 'w');
  await writeBlock(session, path, handle, { block: Buffer.from(text), position: 0 });
  await syncFile(session, path, handle);
  await session.closeFile(path, handle);
}

async function writeBlock(
  session: SftpSession,
  path: string,
  handle: Buffer,
  { block, position }: { block: Buffer; position: number },
): Promise<void> {
  const requests: Promise<undefined>[] = [];
  for (let at = 0; at < block.length; at += REQUEST_BYTES) {
    requests.push(session.write(path, handle, block.subarray(at, at + REQUEST_BYTES), position + at));
  }
  await Promise.all(requests);
}

/** Servers without the request decide themselves when they write to the disk. */
async function syncFile(session: SftpSession, path: string, handle: Buffer): Promise<void> {
  await session.sync(path, handle).catch((error: unknown) => {
    if (!isNotOffered(error)) throw error;
  });
}

/** Servers that open no folders keep the order of renames, as far as their file system does. */
async function syncFolder(session: SftpSession, folder: string): Promise<void> {
  try {
    const handle = await session.openFile(folder);
    await syncFile(session, folder, handle).catch(ignoreRefusal);
    await session.closeFile(folder, handle);
  } catch (error) {
    ignoreRefusal(error);
  }
}

function ignoreRefusal(error: unknown): void {
  if (!isRefusal(error)) throw error;
}

async function replaceFile(session: SftpSession, from: string, to: string): Promise<void> {
  try {
    await session.replace(from, to);
  } catch (error) {
    if (isNotOffered(error)) return replaceByTwo(session, from, to);
    missing(error);
    // Otherwise the folder of `to` is missing.
    if (await exists(session, from)) throw error;
  }
}

/** In two steps, on servers whose renames never replace a file. */
async function replaceByTwo(session: SftpSession, from: string, to: string): Promise<void> {
  if (!(await exists(session, from))) return;
  await removeFile(session, to);
  await session.rename(from, to);
}

/** Has a session of its own until the file is kept or discarded. */
async function createFile(ctx: SftpContext, path: string, scratch: string): Promise<NewFile> {
  const session = await pool.acquire(ctx);
  let isHeld = true;
  const release = (healthy: boolean) => {
    if (isHeld) pool.release(ctx, session, healthy);
    isHeld = false;
  };
  const handle = await session.openNew(path, 'wx').catch((error: unknown) => {
    release(isRefusal(error));
    throw error;
  });
  const stream = new FileStream(session, path, handle);
  return {
    stream,
    path: null,
    scratch: `${scratch}/.spill-${crypto.randomUUID()}`,
    async keep() {
      await syncFile(session, path, handle);
      await session.closeFile(path, handle);
      release(true);
      return stream.bytes;
    },
    async discard() {
      stream.destroy();
      // Its session is closed, as requests of the stream can be on the way.
      release(false);
      await pool.use(ctx, (other) => removeFile(other, path));
    },
  };
}

/** Writes blocks of what has arrived meanwhile, one at a time. */
class FileStream extends Writable {
  bytes = 0;

  constructor(
    private readonly session: SftpSession,
    private readonly path: string,
    private readonly handle: Buffer,
  ) {
    super({ highWaterMark: BLOCK_BYTES });
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    const [first] = chunks;
    const block = first && chunks.length === 1 ? first.chunk : Buffer.concat(chunks.map(({ chunk }) => chunk));
    callbackify(() => this.send(block))(done);
  }

  private async send(block: Buffer): Promise<void> {
    const { session, path, handle } = this;
    await writeBlock(session, path, handle, { block, position: this.bytes });
    this.bytes += block.length;
  }
}
