import type { Stats } from 'ssh2';
import { RetryableError } from '../../../../contract/errors.ts';
import { findInFolders, type FolderEntry, type FoundEntry } from '../folders/find-in-folders.ts';
import type { FoundFile, RemoteContent, SourceStore } from '../store.ts';
import { loginStep, missing, pool, REQUEST_BYTES } from './sessions.ts';
import type { SftpContext, SftpSession } from './session.ts';

const BLOCK_BYTES = 8 * REQUEST_BYTES;
const MICROS = 1_000_000;

export const sftpSourceStore: SourceStore = {
  checkSteps: (ctx) => [loginStep(ctx)],
  find: findFiles,
  placeName: ({ host, path = '' }) => `${host}:${path}`,
};

async function findFiles(ctx: SftpContext & { config: { path?: string } }): Promise<FoundFile[]> {
  const found = await pool.use(ctx, (session) =>
    findInFolders(ctx.config.path ?? '', (path) => listFolder(session, path)),
  );
  return found.map((entry) => foundFile(ctx, entry));
}

async function listFolder(session: SftpSession, folder: string): Promise<FolderEntry[] | null> {
  try {
    const entries: FolderEntry[] = [];
    for (const { filename, attrs } of await session.list(folder)) {
      if (filename === '.' || filename === '..') continue;
      const is_link = attrs.isSymbolicLink();
      const about = is_link ? await session.stat(`${folder}/${filename}`).catch(missing) : attrs;
      if (about) entries.push({ name: filename, is_link, ...aboutFile(about) });
    }
    return entries;
  } catch (error) {
    return missing(error);
  }
}

const aboutFile = (attrs: Stats): Omit<FolderEntry, 'name' | 'is_link'> => ({
  kind: attrs.isFile() ? 'file' : attrs.isDirectory() ? 'folder' : 'other',
  size: attrs.size,
  modified: attrs.mtime * MICROS,
});

function foundFile(ctx: SftpContext, { path, size, modified }: FoundEntry): FoundFile {
  const remote: RemoteContent = {
    has_ranges: true,
    open: async () => ({
      gzip: false,
      bytes: contentOf(ctx, { name: path, size, modified }, { from: 0, length: size }),
    }),
    async part(range) {
      const blocks: Buffer[] = [];
      for await (const block of contentOf(ctx, { name: path, size, modified }, range)) blocks.push(block);
      return Buffer.concat(blocks);
    },
  };
  return { name: path, path: '', size, modified, remote };
}

type Listed = Pick<FoundFile, 'name' | 'size' | 'modified'>;

/** Fails if the file is not the listed one before or after the read: it is being written, or was replaced. */
async function* contentOf(ctx: SftpContext, file: Listed, { from, length }: { from: number; length: number }) {
  const session = await pool.acquire(ctx);
  let healthy = false;
  try {
    const handle = await session.openFile(file.name).catch((error: unknown) => {
      throw missing(error) ?? changed(file);
    });
    await refuseChanged(session, file, handle);
    const end = from + length;
    let next = readBlock(session, file, handle, { from, end });
    for (let at = from; at < end; at += BLOCK_BYTES) {
      const block = await next;
      next = readBlock(session, file, handle, { from: at + BLOCK_BYTES, end });
      // The loop can be left at the yield.
      next.catch(() => {});
      yield block;
    }
    await refuseChanged(session, file, handle);
    await session.closeFile(file.name, handle);
    healthy = true;
  } finally {
    pool.release(ctx, session, healthy);
  }
}

async function refuseChanged(session: SftpSession, file: Listed, handle: Buffer): Promise<void> {
  const now = aboutFile(await session.statOpen(file.name, handle));
  if (now.size !== file.size || now.modified !== file.modified) throw changed(file);
}

const changed = ({ name }: Listed) => new RetryableError('file_changed', `${name} changed while it was being read`);

async function readBlock(
  session: SftpSession,
  file: Listed,
  handle: Buffer,
  { from, end }: { from: number; end: number },
): Promise<Buffer> {
  const block = Buffer.allocUnsafe(Math.max(0, Math.min(BLOCK_BYTES, end - from)));
  const requests: Promise<void>[] = [];
  for (let at = 0; at < block.length; at += REQUEST_BYTES) {
    const part = block.subarray(at, at + REQUEST_BYTES);
    requests.push(fill(session, file, handle, { part, position: from + at }));
  }
  await Promise.all(requests);
  return block;
}

async function fill(
  session: SftpSession,
  file: Listed,
  handle: Buffer,
  { part, position }: { part: Buffer; position: number },
): Promise<void> {
  for (let got = 0; got < part.length; ) {
    const more = await session.read(file.name, handle, part.subarray(got), position + got);
    if (more === 0) {
      const text = `${file.name}: the file ends after ${position + got} of ${file.size} bytes`;
      throw new RetryableError('file_cut_off', text);
    }
    got += more;
  }
}
