import { Writable } from 'node:stream';
import { callbackify } from 'node:util';
import type { StoredObject } from './objects.ts';

/** A file that is uploaded in parts. No reader sees it before `ObjectWriter.complete`. */
export interface Upload {
  key: string;
  id: string;
}

/** What a store of objects needs for tables of files. Every error is a ConnectorError. */
export interface ObjectWriter {
  /** The objects whose keys start with `prefix`. A listing contains every object written before it. */
  list(prefix: string): AsyncIterable<Pick<StoredObject, 'key'>>;
  /** Null: there is no such object. */
  get(key: string): Promise<string | null>;
  put(key: string, text: string): Promise<void>;
  /** Does nothing if there is no such object. */
  remove(key: string): Promise<void>;
  exists(key: string): Promise<boolean>;
  begin(key: string): Promise<Upload>;
  /** @param number of the part, from 1. @returns what `complete` needs of it */
  part(upload: Upload, number: number, body: Uint8Array<ArrayBuffer>): Promise<string>;
  /** Can be repeated. @returns false if the upload does not exist (any more) */
  complete(upload: Upload, parts: string[]): Promise<boolean>;
  /** Does nothing if there is no such upload. */
  abort(upload: Upload): Promise<void>;
}

/** S3 allows 10,000 parts of at least 5 MB, Azure 50,000. Parts grow with the object, which allows 2 TB. */
const FIRST_PART_BYTES = 8 << 20;
const PARTS_PER_SIZE = 1000;

/** Uploads what is written to it in parts, one at a time. Holds one part in memory. */
export class PartStream extends Writable {
  /** What `ObjectWriter.part` has returned, in order; complete after `finish`. */
  readonly parts: string[] = [];
  bytes = 0;
  private held: Uint8Array[] = [];
  private heldBytes = 0;

  constructor(
    private readonly store: ObjectWriter,
    private readonly upload: Upload,
  ) {
    super({ highWaterMark: 1 << 20 });
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.held.push(chunk);
    this.heldBytes += chunk.length;
    const full = this.heldBytes >= FIRST_PART_BYTES * (1 + Math.floor(this.parts.length / PARTS_PER_SIZE));
    this.next(full, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    const rest = this.heldBytes > 0 || this.parts.length === 0;
    this.next(rest, done);
  }

  private next(send: boolean, done: (error?: Error | null) => void): void {
    if (send) callbackify(() => this.send())(done);
    else done();
  }

  private async send(): Promise<void> {
    const body = new Uint8Array(Buffer.concat(this.held));
    [this.held, this.heldBytes] = [[], 0];
    this.parts.push(await this.store.part(this.upload, this.parts.length + 1, body));
    this.bytes += body.length;
  }
}
