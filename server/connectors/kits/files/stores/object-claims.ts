import { FencedError } from '../../../contract/errors.ts';
import type { CommitRecord } from './store.ts';
import type { ObjectWriter, Upload } from './object-writer.ts';

/** The object that one attempt writes. No other attempt ever writes it. */
export interface ObjectClaim {
  fence: number;
  /** The attempt's last commit; null before the first. */
  record: CommitRecord | null;
  /** Uploads that the attempt has begun and neither completed nor aborted. */
  uploads: Upload[];
}

/**
 * The commits of one stream in a bucket. Buckets have no atomic link or rename, and not every store supports
 * conditional writes, so each attempt writes an object of its own, `<key>.<fence>.json`. It writes the object before it
 * lists the others, and lists them again after each commit:
 *  - a commit counts only if no higher fence exists by then, so every later attempt sees it;
 *  - a new attempt takes over the commit of the highest fence below its own by recording it under its own fence. From
 *    then on nothing under a lower fence counts.
 * This relies on one guarantee of S3, compatible stores, Azure and Google Cloud: a listing contains every object written
 * before it.
 */
export class Claims {
  private own: ObjectClaim;

  constructor(
    private readonly store: ObjectWriter,
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

  /** Writes the claim. @returns the claims of lower fences, highest first. @throws FencedError if a higher one exists */
  async open(): Promise<ObjectClaim[]> {
    await this.put(this.own);
    const fences = await this.fences();
    const newest = Math.max(...fences);
    if (newest > this.own.fence) {
      await this.remove(this.own.fence);
      throw new FencedError(newest);
    }
    const lower = fences.filter((fence) => fence < this.own.fence).toSorted((a, b) => b - a);
    const claims = await Promise.all(lower.map((fence) => this.get(fence)));
    return claims.filter((claim) => claim !== null);
  }

  /** Makes a change durable and checks that it counts. @throws FencedError if that is uncertain */
  async change(more: Partial<Omit<ObjectClaim, 'fence'>>): Promise<void> {
    await this.note(more);
    await this.assertNewest();
  }

  /** Makes a change durable that holds whatever other attempts have started. */
  async note(more: Partial<Omit<ObjectClaim, 'fence'>>): Promise<void> {
    const next = { ...this.own, ...more };
    await this.put(next);
    this.own = next;
  }

  async assertNewest(): Promise<void> {
    const newest = Math.max(...(await this.fences()));
    if (newest > this.own.fence) throw new FencedError(newest);
  }

  async remove(fence: number): Promise<void> {
    await this.store.remove(this.keyOf(fence));
  }

  private async put(claim: ObjectClaim): Promise<void> {
    await this.store.put(this.keyOf(claim.fence), JSON.stringify(claim));
  }

  /** Null: a newer attempt has removed it meanwhile. */
  private async get(fence: number): Promise<ObjectClaim | null> {
    const text = await this.store.get(this.keyOf(fence));
    return text === null ? null : (JSON.parse(text) as ObjectClaim);
  }

  private async fences(): Promise<number[]> {
    const fences: number[] = [];
    for await (const { key } of this.store.list(`${this.prefix}.`)) {
      const fence = /^\.(\d{16})\.json$/.exec(key.slice(this.prefix.length))?.[1];
      if (fence) fences.push(Number(fence));
    }
    return fences;
  }

  private keyOf = (fence: number) => `${this.prefix}.${String(fence).padStart(16, '0')}.json`;
}
