import type { WriteTarget } from '../../../contract/connector.ts';
import { DataError } from '../../../contract/errors.ts';
import type { DestinationContext } from '../settings/files.ts';
import type { CheckStep } from './check-steps.ts';
import { Bucket, keyPrefix } from './s3-client.ts';
import { Claims, type S3Claim } from './s3-claims.ts';
import { listObjects } from './s3-listing.ts';
import { abortUpload, beginUpload, completeUpload, PartStream, type Upload } from './s3-upload.ts';
import type { CommitRecord, DestinationStore, Draft, TableStore } from './store.ts';
import { tablePaths } from './table-paths.ts';

export const s3DestinationStore: DestinationStore = {
  checkSteps: bucketSteps,
  open: (ctx, target) => {
    const paths = { ...tablePaths(ctx.config.path, target), scratch: ctx.filesRoot };
    return S3Table.open(new Bucket(ctx, ctx.config), paths, target);
  },
};

/** A run lists, uploads in parts and deletes. */
function bucketSteps(ctx: DestinationContext): CheckStep[] {
  const bucket = new Bucket(ctx, ctx.config);
  const prefix = `${keyPrefix(ctx.config.path)}_pipeline_state/`;
  const key = `${prefix}.check-${crypto.randomUUID()}`;
  const list = { method: 'GET', query: { 'list-type': '2', 'max-keys': '1', prefix } };
  const upload = async () => abortUpload(bucket, await beginUpload(bucket, key));
  return [
    ['Bucket', 'Objects can be listed', () => bucket.document(list, 'ListBucketResult')],
    ['Write', 'An object can be written', () => bucket.send({ method: 'PUT', key, body: 'check' })],
    ['Multipart upload', 'An upload can be started and aborted', upload],
    ['Delete', 'An object can be deleted', () => bucket.send({ method: 'DELETE', key })],
  ];
}

/**
 * A table in a bucket. A draft is a multipart upload, which readers do not see before it is completed; it is completed
 * only after the commit that lists it.
 */
export class S3Table implements TableStore {
  last: CommitRecord | null = null;

  private constructor(
    private readonly bucket: Bucket,
    private readonly place: { folder: string; scratch: string },
    private readonly claims: Claims,
    private readonly lower: S3Claim[],
  ) {
    this.last = lower.find(({ record }) => record !== null)?.record ?? null;
  }

  /** @param paths of the table's files and of the claims in the bucket, and `scratch`, a folder of this machine */
  static async open(
    bucket: Bucket,
    paths: { table: string; states: string; scratch: string },
    target: WriteTarget,
  ): Promise<S3Table> {
    const key = `${keyPrefix(paths.states)}${target.connection_id}-${target.stream_id}`;
    const claims = new Claims(bucket, key, target.fence);
    const lower = await claims.open();
    return new S3Table(bucket, { folder: keyPrefix(paths.table), scratch: paths.scratch }, claims, lower);
  }

  async draft(to: string): Promise<Draft> {
    const upload = await beginUpload(this.bucket, this.place.folder + to);
    // Recorded before it holds a byte, so that the attempt after a crash finds it.
    await this.claims.change({ uploads: [...this.claims.uploads, upload] });
    const stream = new PartStream(this.bucket, upload);
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
    for await (const { key } of listObjects(this.bucket, this.place.folder)) {
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
      await this.bucket.send({ method: 'DELETE', key: this.place.folder + name, accept: [404] });
    }
    const done = new Set(last.publish.map(({ from }) => from));
    this.last = { ...last, publish: [], remove: [] };
    // An attempt that only applies another one's commit records it under its own fence later.
    if (!this.claims.record) return;
    await this.claims.note({ record: this.last, uploads: this.claims.uploads.filter(({ id }) => !done.has(id)) });
  }

  async sweep(): Promise<void> {
    for (const { fence, uploads } of this.lower) {
      for (const upload of uploads) await abortUpload(this.bucket, upload);
      await this.claims.remove(fence);
    }
  }

  private async complete(upload: Upload, parts: string[]): Promise<void> {
    if (await completeUpload(this.bucket, upload, parts)) return;
    const there = await this.bucket.send({ method: 'HEAD', key: upload.key, accept: [404] });
    if (there.status !== 404) return;
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
    await abortUpload(this.bucket, upload);
  }
}
