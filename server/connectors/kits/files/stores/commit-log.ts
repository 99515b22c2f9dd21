import { join } from 'node:path';
import { FencedError } from '../../../contract/errors.ts';
import type { FolderWriter } from './folder-writer.ts';
import type { CommitRecord } from './store.ts';

/** The folder of a log and the start of the names of its files. */
interface LogPlace {
  folder: string;
  key: string;
}

/**
 * The commits of one stream in a folder. Each commit is a file with the next number, `<key>.<number>.json`, which is
 * written under another name first. `claimName` fails if the number is taken, so two attempts can never both commit. That
 * step is the commit; `apply` renames the data files afterwards, and again after a crash.
 */
export class CommitLog {
  /** Of the commits that were tried. */
  private fence: number | null = null;

  private constructor(
    private readonly files: FolderWriter,
    private readonly place: LogPlace,
    private generation: number,
    public last: CommitRecord | null,
  ) {}

  static async open(files: FolderWriter, place: LogPlace): Promise<CommitLog> {
    while (true) {
      const generation = (await generations(files, place)).at(-1);
      if (generation === undefined) return new CommitLog(files, place, 0, null);
      const text = await files.read(pathOf(place, generation));
      // The file is gone: a newer commit has replaced it. Look again.
      if (text !== null) return new CommitLog(files, place, generation, JSON.parse(text));
    }
  }

  /** @throws FencedError if another attempt has committed since. After any other error the commit may count. */
  async append(record: CommitRecord): Promise<void> {
    const { files, place } = this;
    const next = this.generation + 1;
    this.fence = record.fence;
    const temporary = join(place.folder, `.${place.key}.${next}.${record.fence}`);
    await files.write(temporary, JSON.stringify(record));
    if (!(await this.claim(temporary, next))) {
      await files.remove(temporary);
      throw new FencedError();
    }
    const present = await generations(files, place);
    if ((present.at(-1) ?? next) > next) {
      // The number was free only because newer commits had already removed its file.
      await files.remove(pathOf(place, next));
      throw new FencedError();
    }
    await files.sync(place.folder);
    for (const old of present) if (old < next) await files.remove(pathOf(place, old));
    [this.generation, this.last] = [next, record];
  }

  private async claim(temporary: string, generation: number): Promise<boolean> {
    try {
      return await this.files.claimName(temporary, pathOf(this.place, generation));
    } catch (error) {
      // A newer attempt removes what this one has not committed: report that instead of the missing file.
      await this.assertNewest();
      throw error;
    }
  }

  /** @throws FencedError if another attempt has committed since */
  async assertNewest(): Promise<void> {
    const newest = (await generations(this.files, this.place)).at(-1) ?? 0;
    if (newest > this.generation && !(await this.isOwn(newest))) throw new FencedError();
  }

  /** Whether a commit is one of this attempt, whose confirmation was lost. */
  private async isOwn(generation: number): Promise<boolean> {
    const text = await this.files.read(pathOf(this.place, generation));
    return text !== null && JSON.parse(text).fence === this.fence;
  }

  /** Performs the renames and removals of the last commit in the table's folder. Idempotent. */
  async apply(tableFolder: string): Promise<void> {
    const { publish = [], remove = [] } = this.last ?? {};
    if (publish.length === 0 && remove.length === 0) return;
    for (const { from, to } of publish) await this.files.replace(join(tableFolder, from), join(tableFolder, to));
    for (const name of remove) await this.files.remove(join(tableFolder, name));
    await this.files.sync(tableFolder);
  }

  /** Removes what attempts with lower fences have written and not committed. */
  async sweep(fence: number): Promise<void> {
    const { folder, key } = this.place;
    for (const name of await this.files.names(folder)) {
      const of = name.startsWith(`.${key}.`) ? /^\d+\.(\d+)$/.exec(name.slice(key.length + 2)) : null;
      if (of && Number(of[1]) < fence) await this.files.remove(join(folder, name));
    }
  }
}

const pathOf = ({ folder, key }: LogPlace, generation: number) =>
  join(folder, `${key}.${String(generation).padStart(10, '0')}.json`);

async function generations(files: FolderWriter, { folder, key }: LogPlace): Promise<number[]> {
  const own = (await files.names(folder)).filter((name) => name.startsWith(`${key}.`) && name.endsWith('.json'));
  return own.map((name) => Number(name.slice(key.length + 1, -'.json'.length))).toSorted((a, b) => a - b);
}
