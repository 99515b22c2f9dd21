import { join, relative } from 'node:path';
import type { WriteTarget } from '../../../contract/connector.ts';
import { FencedError } from '../../../contract/errors.ts';
import { CommitLog } from './commit-log.ts';
import type { FolderWriter } from './folder-writer.ts';
import type { CommitRecord, Draft, TableStore } from './store.ts';

interface TableFolders {
  table: string;
  /** Of the commits. */
  states: string;
  /** Of unfinished files, on the same file system as `table`. */
  drafts: string;
}

/** A table in a folder. Drafts are files whose names start with a dot; a rename publishes them. */
export class FolderTable implements TableStore {
  /** Drafts of the last commit that was tried: it may count even if its confirmation was lost. */
  private listed = new Set<string>();

  private constructor(
    private readonly place: FolderWriter,
    private readonly folders: TableFolders,
    private readonly target: WriteTarget,
    private readonly log: CommitLog,
  ) {}

  static async open(files: FolderWriter, folders: TableFolders, target: WriteTarget): Promise<FolderTable> {
    const place = { folder: folders.states, key: `${target.connection_id}-${target.stream_id}` };
    return new FolderTable(files, folders, target, await CommitLog.open(files, place));
  }

  get last(): CommitRecord | null {
    return this.log.last;
  }

  async draft(to: string): Promise<Draft> {
    const { table, drafts } = this.folders;
    const { stream_id, fence } = this.target;
    const path = join(drafts, `.${stream_id}.${fence}.${to}`);
    const from = relative(table, path);
    const file = await this.place.create(path);
    return {
      stream: file.stream,
      path: file.path,
      scratch: file.scratch,
      keep: () => file.keep(),
      discard: async () => {
        // The next attempt decides.
        if (!this.listed.has(from)) await file.discard();
      },
      published: () => ({ from, to }),
    };
  }

  files = () => this.place.names(this.folders.table);
  apply = () => this.log.apply(this.folders.table);
  assertNewest = () => this.log.assertNewest();

  async append(record: CommitRecord): Promise<void> {
    this.listed = new Set(record.publish.map(({ from }) => from));
    try {
      await this.log.append(record);
    } catch (error) {
      if (error instanceof FencedError) this.listed.clear();
      throw error;
    }
  }

  async sweep(): Promise<void> {
    const { stream_id, fence } = this.target;
    const prefix = `.${stream_id}.`;
    for (const name of await this.place.names(this.folders.drafts)) {
      // Those of a higher fence belong to an attempt that has begun meanwhile.
      const own = name.startsWith(prefix) && Number.parseInt(name.slice(prefix.length), 10) < fence;
      if (own) await this.place.discard(join(this.folders.drafts, name));
    }
    await this.log.sweep(fence);
  }
}
