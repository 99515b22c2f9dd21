import { link, open, readdir, readFile, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { StreamState, WriteCounts } from '../../../contract/connector.ts';
import { FencedError } from '../../../contract/errors.ts';

/** What one commit says: the last one is how things stand. Paths are below the folder of the table. */
export interface CommitRecord {
  fence: number;
  stream_run_id: string;
  state: StreamState | null;
  state_version: number;
  finished: boolean;
  counts: WriteCounts;
  /** Files that this stream run has published. */
  files: number;
  /**
   * Renames, or completions of uploads with the tags of their parts, that make the commit's rows visible; repeated
   * after a crash.
   */
  publish: { from: string; to: string; parts?: string[] }[];
  /** Files that the commit replaces; removed after the renames. */
  remove: string[];
}

/**
 * The commits of one stream, each a file with the next number: `<key>.<number>.json`. It is made by `link`, which
 * fails when somebody else has made the same one, so that two attempts can never both commit. The commit is the link;
 * the renames follow, and `open` does what a crash left undone.
 */
export class CommitLog {
  private constructor(
    private readonly folder: string,
    private readonly key: string,
    private generation: number,
    public last: CommitRecord | null,
  ) {}

  static async open(folder: string, key: string): Promise<CommitLog> {
    while (true) {
      const generation = (await generations(folder, key)).at(-1);
      if (generation === undefined) return new CommitLog(folder, key, 0, null);
      const text = await readFile(pathOf(folder, key, generation), 'utf8').catch(ignoreMissing);
      // Gone in between: a newer one has replaced it.
      if (text !== null) return new CommitLog(folder, key, generation, JSON.parse(text));
    }
  }

  /** @throws FencedError when another attempt has committed since. */
  async append(record: CommitRecord): Promise<void> {
    const next = this.generation + 1;
    const temporary = join(this.folder, `.${this.key}.${next}.${record.fence}`);
    await writeDurably(temporary, JSON.stringify(record));
    try {
      await link(temporary, pathOf(this.folder, this.key, next));
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') throw new FencedError();
      throw error;
    } finally {
      await unlink(temporary).catch(ignoreMissing);
    }
    const present = await generations(this.folder, this.key);
    if ((present.at(-1) ?? next) > next) {
      // The number was free only because newer commits had already swept it away.
      await unlink(pathOf(this.folder, this.key, next)).catch(ignoreMissing);
      throw new FencedError();
    }
    await syncFolder(this.folder);
    for (const old of present) if (old < next) await unlink(pathOf(this.folder, this.key, old)).catch(ignoreMissing);
    [this.generation, this.last] = [next, record];
  }

  /** @throws FencedError when another attempt has committed since. */
  async assertNewest(): Promise<void> {
    const newest = (await generations(this.folder, this.key)).at(-1) ?? 0;
    if (newest > this.generation) throw new FencedError();
  }

  /** Does, or does again, the renames and removals of the last commit in the table's folder. */
  async apply(tableFolder: string): Promise<void> {
    for (const { from, to } of this.last?.publish ?? []) {
      await rename(join(tableFolder, from), join(tableFolder, to)).catch(ignoreMissing);
    }
    for (const name of this.last?.remove ?? []) await unlink(join(tableFolder, name)).catch(ignoreMissing);
    await syncFolder(tableFolder);
  }
}

const pathOf = (folder: string, key: string, generation: number) =>
  join(folder, `${key}.${String(generation).padStart(10, '0')}.json`);

async function generations(folder: string, key: string): Promise<number[]> {
  const own = (await readdir(folder)).filter((name) => name.startsWith(`${key}.`) && name.endsWith('.json'));
  return own.map((name) => Number(name.slice(key.length + 1, -'.json'.length))).toSorted((a, b) => a - b);
}

async function writeDurably(path: string, text: string): Promise<void> {
  const handle = await open(path, 'w');
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A rename outlasts a power cut only once its folder is on the disk. */
async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export function ignoreMissing(error: unknown): null {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
  throw error;
}
