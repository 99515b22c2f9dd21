import { FencedError } from '../../../contract/errors.ts';
import type { CommitRecord } from './commit-log.ts';
import type { Bucket } from './s3-client.ts';
import { listObjects } from './s3-listing.ts';
import type { Upload } from './s3-upload.ts';

/** What one attempt has put down: nobody else ever writes this object. */
export interface Claim {
  fence: number;
  /** Its last commit; null before the first. */
  record: CommitRecord | null;
  /** Uploads that it has begun and neither completed nor aborted. */
  uploads: Upload[];
}

/**
 * The commits of one stream in a bucket, where no two attempts can agree by a link or a rename, and not every store
 * knows conditional writes. Each attempt has an object of its own, `<key>.<fence>.json`. It puts that down before it
 * looks who else is there, and looks again after each commit:
 *  - a commit counts for its attempt only if no higher fence has been put down by then; so whoever comes later sees it;
 *  - whoever comes takes over the commit of the highest fence below his own, by a record under his fence, and from then
 *    on nothing of a lower one counts.
 * It needs what S3 and its like promise: what was written is in the next listing.
 */
export class Claims {
  private own: Claim;

  constructor(
    private readonly bucket: Bucket,
    private readonly prefix: string,
    fence: number,
  ) {
    this.own = { fence, record: null, uploads: [] };
  }

  get record(): CommitRecord | null {
    return this.own.record;
  }
  get uploads(): readonly Upload[] {
    return this.own.uploads;
  }

  /** Puts down the claim. @returns those of lower fences, the highest first. @throws FencedError for a higher one */
  async open(): Promise<Claim[]> {
    await this.put(this.own);
    const fences = await this.fences();
    if (fences.some((fence) => fence > this.own.fence)) {
      await this.remove(this.own.fence);
      throw new FencedError();
    }
    const lower = fences.filter((fence) => fence < this.own.fence).toSorted((a, b) => b - a);
    const claims = await Promise.all(lower.map((fence) => this.get(fence)));
    return claims.filter((claim) => claim !== null);
  }

  /** Makes a change durable, and sure that it counts. @throws FencedError when it may or may not */
  async change(more: Partial<Omit<Claim, 'fence'>>): Promise<void> {
    await this.note(more);
    await this.assertNewest();
  }

  /** Makes a change durable that is true whoever else has come. */
  async note(more: Partial<Omit<Claim, 'fence'>>): Promise<void> {
    const next = { ...this.own, ...more };
    await this.put(next);
    this.own = next;
  }

  async assertNewest(): Promise<void> {
    if ((await this.fences()).some((fence) => fence > this.own.fence)) throw new FencedError();
  }

  async remove(fence: number): Promise<void> {
    await this.bucket.send({ method: 'DELETE', key: this.keyOf(fence), accept: [404] });
  }

  private async put(claim: Claim): Promise<void> {
    const headers = { 'content-type': 'application/json' };
    await this.bucket.send({ method: 'PUT', key: this.keyOf(claim.fence), headers, body: JSON.stringify(claim) });
  }

  /** Null: swept away in between by a newer attempt. */
  private async get(fence: number): Promise<Claim | null> {
    const answer = await this.bucket.send({ method: 'GET', key: this.keyOf(fence), accept: [404] });
    return answer.status === 404 ? null : ((await answer.json()) as Claim);
  }

  private async fences(): Promise<number[]> {
    const fences: number[] = [];
    for await (const { key } of listObjects(this.bucket, `${this.prefix}.`)) {
      const fence = /^\.(\d{16})\.json$/.exec(key.slice(this.prefix.length))?.[1];
      if (fence) fences.push(Number(fence));
    }
    return fences;
  }

  private keyOf = (fence: number) => `${this.prefix}.${String(fence).padStart(16, '0')}.json`;
}
