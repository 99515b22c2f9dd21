import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { link, open, readdir, readFile, rename, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DestinationContext } from '../settings/files.ts';
import { FolderTable } from './folder-table.ts';
import type { FolderWriter } from './folder-writer.ts';
import { fileError, folderBelow } from './local-files.ts';
import type { DestinationStore } from './store.ts';
import { tablePaths } from './table-paths.ts';

export const localDestinationStore: DestinationStore = {
  checkSteps: (ctx) => [['Folder', 'A file can be written', () => writeProbe(ctx)]],
  async open({ config, filesRoot }, target) {
    const paths = tablePaths(config.path, target);
    const table = await folderBelow(filesRoot, paths.table);
    const states = await folderBelow(filesRoot, paths.states);
    return FolderTable.open(localFolders, { table, states, drafts: table }, target);
  },
};

async function writeProbe(ctx: DestinationContext): Promise<void> {
  const folder = await folderBelow(ctx.filesRoot, ctx.config.path);
  const probe = join(folder, `.check-${crypto.randomUUID()}`);
  try {
    await writeFile(probe, 'check', { flag: 'wx' });
  } catch (error) {
    throw fileError(error, ctx.config.path);
  } finally {
    await rm(probe, { force: true });
  }
}

/** Folders of this machine. */
export const localFolders: FolderWriter = {
  names: (folder) => readdir(folder),
  read: (path) => readFile(path, 'utf8').catch(ifCode('ENOENT', null)),
  write: writeDurably,
  async claimName(from, to) {
    // A rename would replace the file that has the name.
    const isFree = await link(from, to).then(() => true, ifCode('EEXIST', false));
    if (isFree) await unlink(from);
    return isFree;
  },
  async replace(from, to) {
    try {
      await rename(from, to);
    } catch (error) {
      ifCode('ENOENT', null)(error);
      // Otherwise the folder of `to` is missing.
      if (await stat(from).catch(ifCode('ENOENT', null))) throw error;
    }
  },
  remove: (path) => unlink(path).catch(ifCode('ENOENT', undefined)),
  discard: (path) => rm(path, { recursive: true, force: true }),
  // A rename survives a power failure only once its folder is synced.
  sync: (folder) => syncPath(folder, 'r'),
  async create(path) {
    const stream = createWriteStream(path, { flags: 'wx' });
    await once(stream, 'open');
    return {
      stream,
      path,
      scratch: `${path}.spill`,
      async keep() {
        await syncPath(path, 'r+');
        return (await stat(path)).size;
      },
      async discard() {
        stream.destroy();
        await rm(path, { force: true });
      },
    };
  },
};

async function writeDurably(path: string, text: string): Promise<void> {
  const handle = await open(path, 'w');
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function syncPath(path: string, flags: 'r' | 'r+'): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A value in place of errors of the file system with this code. */
const ifCode =
  <Value>(code: string, value: Value) =>
  (error: unknown): Value => {
    if (error instanceof Error && 'code' in error && error.code === code) return value;
    throw error;
  };
