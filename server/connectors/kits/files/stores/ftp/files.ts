import type { FileInfo } from 'basic-ftp';
import { ConfigurationError, RetryableError } from '../../../../contract/errors.ts';
import { findInFolders, type FolderEntry, type FoundEntry } from '../folders/find-in-folders.ts';
import { SessionPool } from '../folders/session-pool.ts';
import { type FoundFile, type RemoteContent, type SourceStore, UNKNOWN_TIME } from '../store.ts';
import type { FtpContext } from './login.ts';
import { type FileAbout, FtpSession } from './session.ts';

const pool = new SessionPool<FtpContext, FtpSession>((ctx) => FtpSession.open(ctx));

const MICROS = 1000;
const MAX_RESUMPTIONS = 3;

export const ftpSourceStore: SourceStore = {
  checkSteps: (ctx) => [
    ['Login', '', () => pool.use(ctx, async ({ protocol }) => (protocol ? `Encrypted, ${protocol}` : 'Not encrypted'))],
  ],
  find: findFiles,
  placeName: ({ host, path = '' }) => `${host}:${path}`,
};

async function findFiles(ctx: FtpContext & { config: { path?: string } }): Promise<FoundFile[]> {
  return pool.use(ctx, async (session) => {
    const entries = await findInFolders(ctx.config.path ?? '', (folder) => listFolder(session, folder));
    const files: FoundFile[] = [];
    for (const entry of entries) files.push(foundFile(ctx, await dated(session, entry)));
    return files;
  });
}

async function listFolder(session: FtpSession, folder: string): Promise<FolderEntry[] | null> {
  const infos = await session.list(folder === '.' ? '' : folder).catch(missing);
  if (!infos) return null;
  const entries: FolderEntry[] = [];
  for (const info of infos) {
    if (info.name !== '.' && info.name !== '..') entries.push(await entryOf(session, folder, info));
  }
  return entries;
}

async function entryOf(session: FtpSession, folder: string, info: FileInfo): Promise<FolderEntry> {
  const { name, size, isSymbolicLink: is_link } = info;
  if (!is_link) {
    const kind = info.isFile ? 'file' : info.isDirectory ? 'folder' : 'other';
    const time = (info.modifiedAt?.getTime() ?? Number.NaN) * MICROS;
    return { name, kind, is_link, size, modified: Number.isNaN(time) ? UNKNOWN_TIME : time };
  }
  // What has no size is a folder, or leads nowhere: then its listing is empty.
  const path = folder === '.' ? name : `${folder.replace(/\/$/, '')}/${name}`;
  const about = await session.about(path).catch(refused);
  if (!about || about.size === null) return { name, kind: 'folder', is_link, size: 0, modified: UNKNOWN_TIME };
  return { name, kind: 'file', is_link, size: about.size, modified: about.modified ?? UNKNOWN_TIME };
}

/** Listings in the form of `ls` have no reliable times. */
async function dated(session: FtpSession, entry: FoundEntry): Promise<FoundEntry> {
  if (entry.modified !== UNKNOWN_TIME) return entry;
  const about = await session.about(entry.path).catch(missing);
  return { ...entry, size: about?.size ?? entry.size, modified: about?.modified ?? UNKNOWN_TIME };
}

function refused(error: unknown): null {
  if (error instanceof ConfigurationError) return null;
  throw error;
}

function missing(error: unknown): null {
  if (error instanceof ConfigurationError && error.code === 'file_not_found') return null;
  throw error;
}

type Listed = Pick<FoundFile, 'name' | 'size' | 'modified'>;

function foundFile(ctx: FtpContext, { path, size, modified }: FoundEntry): FoundFile {
  const file: Listed = { name: path, size, modified };
  const remote: RemoteContent = {
    // A transfer ends with the file or the connection, so that each part would need a login of its own.
    has_ranges: false,
    open: async () => ({ gzip: false, bytes: contentOf(ctx, file, 0) }),
    part: (range) => partOf(ctx, file, range),
  };
  return { ...file, path: '', remote };
}

async function partOf(ctx: FtpContext, file: Listed, range: { from: number; length: number }): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let held = 0;
  for await (const chunk of contentOf(ctx, file, range.from)) {
    chunks.push(chunk);
    held += chunk.length;
    if (held >= range.length) break;
  }
  return Buffer.concat(chunks).subarray(0, range.length);
}

/** Resumes after a lost connection where it broke off, provided that the time of the file shows it to be the same. */
async function* contentOf(ctx: FtpContext, file: Listed, from: number): AsyncGenerator<Buffer> {
  let at = from;
  let lost: RetryableError | null = null;
  for (let resumed = 0; ; resumed += 1) {
    try {
      for await (const chunk of transfer(ctx, file, at)) {
        at += chunk.length;
        yield chunk;
      }
      return;
    } catch (error) {
      ctx.signal.throwIfAborted();
      const isKnown = at > from && file.modified !== UNKNOWN_TIME;
      if (!(error instanceof RetryableError) || error.code === 'file_changed') throw lost ?? error;
      if (!isKnown || resumed >= MAX_RESUMPTIONS) throw lost ?? error;
      lost ??= error;
    }
  }
}

/** Fails if the file is not the listed one before or after the transfer: it is being written, or was replaced. */
async function* transfer(ctx: FtpContext, file: Listed, from: number): AsyncGenerator<Buffer> {
  const session = await pool.acquire(ctx);
  let healthy = false;
  try {
    refuseChanged(file, await session.about(file.name).catch(missing));
    let at = from;
    for await (const chunk of session.download(file.name, from)) {
      at += chunk.length;
      if (at > file.size) throw changed(file);
      yield chunk;
    }
    refuseChanged(file, await session.about(file.name).catch(missing));
    if (at < file.size) {
      const text = `${file.name}: the server sent ${at} of ${file.size} bytes`;
      throw new RetryableError('file_cut_off', text);
    }
    healthy = true;
  } finally {
    pool.release(ctx, session, healthy);
  }
}

function refuseChanged(file: Listed, about: FileAbout | null): void {
  if (about === null) throw changed(file);
  const { size, modified } = about;
  if (size !== null && size !== file.size) throw changed(file);
  if (modified !== null && file.modified !== UNKNOWN_TIME && modified !== file.modified) throw changed(file);
}

const changed = ({ name }: Listed) => new RetryableError('file_changed', `${name} changed while it was being read`);
