import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { open, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { WriteTarget } from '../../../contract/connector.ts';
import type { DestinationContext } from '../settings/files.ts';
import { CommitLog } from './commit-log.ts';
import { fileError, folderBelow } from './local-files.ts';
import type { CommitRecord, DestinationStore, Draft, TableStore } from './store.ts';
import { tablePaths } from './table-paths.ts';

export const localDestinationStore: DestinationStore = {
  checkSteps: (ctx) => [['Folder', 'A file can be written', () => writeProbe(ctx)]],
  open: ({ config, filesRoot }, target) => LocalTable.open(filesRoot, tablePaths(config.path, target), target),
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

/** A table in a folder. Drafts are files whose names start with a dot; a rename publishes them. */
export class LocalTable implements TableStore {
  private constructor(
    private readonly target: WriteTarget,
    private readonly folder: string,
    private readonly log: CommitLog,
  ) {}

  /** @param paths of the table's files and of the commit logs, relative to the root */
  static async open(root: string, paths: { table: string; states: string }, target: WriteTarget): Promise<LocalTable> {
    const folder = await folderBelow(root, paths.table);
    const states = await folderBelow(root, paths.states);
    return new LocalTable(target, folder, await CommitLog.open(states, `${target.connection_id}-${target.stream_id}`));
  }

  get last(): CommitRecord | null {
    return this.log.last;
  }

  async draft(to: string): Promise<Draft> {
    const { stream_id, fence } = this.target;
    const from = `.${stream_id}.${fence}.${to}`;
    const path = join(this.folder, from);
    const stream = createWriteStream(path, { flags: 'wx' });
    await once(stream, 'open');
    return {
      stream,
      path,
      scratch: `${path}.spill`,
      keep: () => syncFile(path),
      async discard() {
        stream.destroy();
        await rm(path, { force: true });
      },
      published: () => ({ from, to }),
    };
  }

  files = () => readdir(this.folder);
  append = (record: CommitRecord) => this.log.append(record);
  apply = () => this.log.apply(this.folder);
  assertNewest = () => this.log.assertNewest();

  async sweep(): Promise<void> {
    for (const name of await readdir(this.folder)) {
      if (name.startsWith(`.${this.target.stream_id}.`)) {
        await rm(join(this.folder, name), { recursive: true, force: true });
      }
    }
  }
}

/** @returns the file's size in bytes */
async function syncFile(path: string): Promise<number> {
  const handle = await open(path, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  return (await stat(path)).size;
}
