import type { WriteTarget } from '../../../contract/connector.ts';
import { DataError } from '../../../contract/errors.ts';
import type { DestinationContext } from '../settings/files.ts';
import { Claims, type ObjectClaim } from './object-claims.ts';
import { type ObjectWriter, PartStream, type Upload } from './object-writer.ts';
import type { CommitRecord, Draft, TableStore } from './store.ts';
import { tablePaths } from './table-paths.ts';

/** A folder as a prefix of keys: no leading slash, one at the end; empty for the bucket itself (`.`). */
export const keyPrefix = (path: string) =>
  path
    .split('/')
    .filter((segment) => segment !== '' && segment !== '.')
    .map((segment) => `${segment}/`)
    .join('');

/**
 * A table in a bucket. A draft is an upload, which readers do not see before it is completed; it is completed only after the
 * commit that lists it.
 */
export class ObjectTable implements TableStore {
  last: CommitRecord | null = null;

  private constructor(
    private readonly store: ObjectWriter,
    private readonly place: { folder: string; scratch: string },
    private readonly claims: Claims,
    private readonly lower: ObjectClaim[],
  ) {
    this.last = lower.find(({ record }) => record !== null)?.record ?? null;
  }

  static async open(store: ObjectWriter, ctx: DestinationContext, target: WriteTarget): Promise<ObjectTable> {
    const paths = tablePaths(ctx.config.path, target);
    const key = `${keyPrefix(paths.states)}${target.connection_id}-${target.stream_id}`;
    const claims = new Claims(store, key, target.fence);
    const lower = await claims.open();
    return new ObjectTable(store, { folder: keyPrefix(paths.table), scratch: ctx.filesRoot }, claims, lower);
  }

  async draft(to: string): Promise<Draft> {
    const upload = await this.store.begin(this.place.folder + to);
    // Recorded before it holds a byte, so that the attempt after a crash finds it.
    await this.claims.change({ uploads: [...this.claims.uploads, upload] });
    const stream = new PartStream(this.store, upload);
    return {
      stream,
      path: null,
      scratch: `${this.place.scratch}/.spill-${crypto.randomUUID()}`,
      keep: async () => stream.bytes,
      discard: async () => {
        stream.destroy();
        await this.release(upload);
      },
      published: () => ({ from: upload.id, to, parts: stream.parts }),
    };
  }

  async files(): Promise<string[]> {
    const names: string[] = [];
    for await (const { key } of this.store.list(this.place.folder)) {
      names.push(key.slice(this.place.folder.length));
    }
    return names.filter((name) => !name.includes('/'));
  }

  async append(record: CommitRecord): Promise<void> {
    this.last = record;
    await this.claims.change({ record });
  }

  assertNewest = () => this.claims.assertNewest();

  async apply(): Promise<void> {
    const { last } = this;
    if (!last || (last.publish.length === 0 && last.remove.length === 0)) return;
    for (const { from, to, parts } of last.publish)
      await this.complete({ key: this.place.folder + to, id: from }, parts ?? []);
    for (const name of last.remove) {
      await this.store.remove(this.place.folder + name);
    }
    const done = new Set(last.publish.map(({ from }) => from));
    this.last = { ...last, publish: [], remove: [] };
    // An attempt that only applies another one's commit records it under its own fence later.
    if (!this.claims.record) return;
    await this.claims.note({ record: this.last, uploads: this.claims.uploads.filter(({ id }) => !done.has(id)) });
  }

  async sweep(): Promise<void> {
    for (const { fence, uploads } of this.lower) {
      for (const upload of uploads) await this.store.abort(upload);
      await this.claims.remove(fence);
    }
  }

  private async complete(upload: Upload, parts: string[]): Promise<void> {
    if (await this.store.complete(upload, parts)) return;
    if (await this.store.exists(upload.key)) return;
    if (this.last) this.last = { ...this.last, publish: [] };
    // The loss is reported once: the next attempts continue after it.
    await this.claims.change({ record: this.last });
    throw new DataError(
      'committed_file_lost',
      `The store dropped the upload of ${upload.key}, whose rows were committed`,
    );
  }

  private async release(upload: Upload): Promise<void> {
    // A commit that lists the upload may count even if its confirmation was lost: the next attempt decides.
    if (this.last?.publish.some(({ from }) => from === upload.id)) return;
    await this.store.abort(upload);
  }
}
