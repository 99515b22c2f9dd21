import { Writable } from 'node:stream';
import { callbackify } from 'node:util';
import type { Bucket } from './s3-client.ts';

/** S3 allows 10,000 parts of at least 5 MB. Parts grow with the object, which allows 2 TB. */
const FIRST_PART_BYTES = 8 << 20;
const PARTS_PER_SIZE = 1000;

export interface Upload {
  key: string;
  id: string;
}

/** Starts a multipart upload. Nothing is visible before `completeUpload`. */
export async function beginUpload(bucket: Bucket, key: string): Promise<Upload> {
  const answer = await bucket.document(
    { method: 'POST', key, query: { uploads: '' } },
    'InitiateMultipartUploadResult',
  );
  return { key, id: String(answer.UploadId) };
}

/** Deletes an unfinished upload; does nothing if there is none. */
export async function abortUpload(bucket: Bucket, { key, id }: Upload): Promise<void> {
  const answer = await bucket.send({ method: 'DELETE', key, query: { uploadId: id }, accept: [404] });
  await answer.body?.cancel();
}

/** @param parts the tags of the parts, in order. @returns false if the upload does not exist (any more) */
export async function completeUpload(bucket: Bucket, { key, id }: Upload, parts: string[]): Promise<boolean> {
  const listed = parts.map(
    (tag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${escapeXml(tag)}</ETag></Part>`,
  );
  const body = `<CompleteMultipartUpload>${listed.join('')}</CompleteMultipartUpload>`;
  const call = { method: 'POST', key, query: { uploadId: id }, headers: { 'content-type': 'application/xml' }, body };
  try {
    await bucket.document(call, 'CompleteMultipartUploadResult');
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'upload_lost') return false;
    throw error;
  }
}

const escapeXml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');

/** Uploads what is written to it in parts, one at a time. Holds one part in memory. */
export class PartStream extends Writable {
  /** The tags of the parts, in order; complete after `finish`. */
  readonly parts: string[] = [];
  bytes = 0;
  private held: Uint8Array[] = [];
  private heldBytes = 0;

  constructor(
    private readonly bucket: Bucket,
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
    const query = { partNumber: String(this.parts.length + 1), uploadId: this.upload.id };
    const answer = await this.bucket.send({ method: 'PUT', key: this.upload.key, query, body });
    await answer.body?.cancel();
    this.parts.push(answer.headers.get('etag') ?? '');
    this.bytes += body.length;
  }
}
