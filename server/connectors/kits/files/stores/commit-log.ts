import { link, open, readdir, readFile, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { FencedError } from '../../../contract/errors.ts';
import type { CommitRecord } from './store.ts';

/**
 * The commits of one stream in a folder. Each commit is a file with the next number, `<key>.<number>.json`, created by
 * `link`: it fails if the file exists, so two attempts can never both commit. The link is the commit; `apply` renames
 * the data files afterwards, and again after a crash.
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
      // The file is gone: a newer commit has replaced it. Look again.
      if (text !== null) return new CommitLog(folder, key, generation, JSON.parse(text));
    }
  }

  /** @throws FencedError if another attempt has committed since */
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
      // The number was free only because newer commits had already removed its file.
      await unlink(pathOf(this.folder, this.key, next)).catch(ignoreMissing);
      throw new FencedError();
    }
    await syncFolder(this.folder);
    for (const old of present) if (old < next) await unlink(pathOf(this.folder, this.key, old)).catch(ignoreMissing);
    [this.generation, this.last] = [next, record];
  }

  /** @throws FencedError if another attempt has committed since */
  async assertNewest(): Promise<void> {
    const newest = (await generations(this.folder, this.key)).at(-1) ?? 0;
    if (newest > this.generation) throw new FencedError();
  }

  /** Performs the renames and removals of the last commit in the table's folder. Idempotent. */
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

/** A rename survives a power failure only once its folder is synced. */
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
