import type { DestinationContext } from '../settings/files.ts';
import type { CheckStep } from './check-steps.ts';
import { keyPrefix, ObjectTable } from './object-table.ts';
import type { ObjectWriter, Upload } from './object-writer.ts';
import { Bucket } from './s3-client.ts';
import { listObjects } from './s3-listing.ts';
import type { DestinationStore } from './store.ts';

/** Tables in buckets with the interface of S3. */
export const bucketTables = (bucketOf: (ctx: DestinationContext) => Bucket): DestinationStore => ({
  checkSteps: (ctx) => bucketSteps(ctx, bucketOf(ctx)),
  open: async (ctx, target) => ObjectTable.open(s3Objects(bucketOf(ctx)), ctx, target),
});

export const s3DestinationStore = bucketTables((ctx) => new Bucket(ctx, ctx.config));

/** A run lists, uploads in parts and deletes. */
function bucketSteps(ctx: DestinationContext, bucket: Bucket): CheckStep[] {
  const objects = s3Objects(bucket);
  const prefix = `${keyPrefix(ctx.config.path)}_pipeline_state/`;
  const key = `${prefix}.check-${crypto.randomUUID()}`;
  const list = { method: 'GET', query: { 'list-type': '2', 'max-keys': '1', prefix } };
  const upload = async () => objects.abort(await objects.begin(key));
  return [
    ['Bucket', 'Objects can be listed', () => bucket.document(list, 'ListBucketResult')],
    ['Write', 'An object can be written', () => objects.put(key, 'check')],
    ['Multipart upload', 'An upload can be started and aborted', upload],
    ['Delete', 'An object can be deleted', () => objects.remove(key)],
  ];
}

/** Uploads are multipart uploads. */
function s3Objects(bucket: Bucket): ObjectWriter {
  const discard = async (answer: Promise<Response>) => {
    await (await answer).body?.cancel();
  };
  return {
    list: (prefix) => listObjects(bucket, prefix),
    async get(key) {
      const answer = await bucket.send({ method: 'GET', key, accept: [404] });
      if (answer.status !== 404) return answer.text();
      await answer.body?.cancel();
      return null;
    },
    put: (key, text) =>
      discard(bucket.send({ method: 'PUT', key, headers: { 'content-type': 'application/json' }, body: text })),
    remove: (key) => discard(bucket.send({ method: 'DELETE', key, accept: [404] })),
    async exists(key) {
      const { status } = await bucket.send({ method: 'HEAD', key, accept: [404] });
      return status !== 404;
    },
    async begin(key) {
      const answer = await bucket.document(
        { method: 'POST', key, query: { uploads: '' } },
        'InitiateMultipartUploadResult',
      );
      return { key, id: String(answer.UploadId) };
    },
    async part({ key, id }, number, body) {
      const query = { partNumber: String(number), uploadId: id };
      const answer = await bucket.send({ method: 'PUT', key, query, body });
      await answer.body?.cancel();
      return answer.headers.get('etag') ?? '';
    },
    complete: (upload, parts) => completeUpload(bucket, upload, parts),
    abort: ({ key, id }) => discard(bucket.send({ method: 'DELETE', key, query: { uploadId: id }, accept: [404] })),
  };
}

/** @param parts the tags of the parts, in order */
async function completeUpload(bucket: Bucket, { key, id }: Upload, parts: string[]): Promise<boolean> {
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
