import { findObjects, type StoredObject } from './objects.ts';
import { Bucket } from './s3-client.ts';
import type { SourceStore } from './store.ts';

export const s3SourceStore: SourceStore = {
  find: (ctx) => {
    const bucket = new Bucket(ctx, ctx.config);
    return findObjects(
      ctx,
      (prefix) => listObjects(bucket, prefix),
      (key, headers) => bucket.send({ method: 'GET', key, headers }),
    );
  },
  placeName: ({ bucket, path = '' }) => `${bucket}/${path}`,
};

/** The objects whose keys start with `prefix`, in the order of the keys. */
export async function* listObjects(bucket: Bucket, prefix: string): AsyncGenerator<StoredObject> {
  let token: string | null = null;
  do {
    const query = { 'list-type': '2', prefix, 'encoding-type': 'url', ...(token && { 'continuation-token': token }) };
    const page: Record<string, unknown> = await bucket.document({ method: 'GET', query }, 'ListBucketResult');
    const decode = page.EncodingType === 'url' ? (key: string) => decodeURIComponent(key.replaceAll('+', ' ')) : String;
    for (const one of (page.Contents ?? []) as Record<string, string>[]) {
      const modified = Date.parse(one.LastModified ?? '') * 1000;
      yield { key: decode(one.Key ?? ''), size: Number(one.Size), modified, etag: one.ETag ?? '' };
    }
    token = page.IsTruncated === 'true' ? ((page.NextContinuationToken as string | undefined) ?? null) : null;
  } while (token);
}
