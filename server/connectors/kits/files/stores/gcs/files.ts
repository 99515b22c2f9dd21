import { ConfigurationError } from '../../../../contract/errors.ts';
import { textOf } from '../http-request.ts';
import { findObjects, type StoredObject } from '../objects.ts';
import type { SourceStore } from '../store.ts';
import { GcsBucket } from './bucket.ts';

export const gcsSourceStore: SourceStore = {
  find: (ctx) => {
    const bucket = new GcsBucket(ctx);
    return findObjects(
      ctx,
      (prefix) => objects(bucket, prefix),
      (key, { 'if-match': generation = '', ...headers }) =>
        // Otherwise the store decompresses what is stored with gzip, and cannot send parts of it.
        bucket.get(key, { alt: 'media', ifGenerationMatch: generation }, { ...headers, 'accept-encoding': 'gzip' }),
    );
  },
  placeName: ({ bucket, path = '' }) => `${bucket}/${path}`,
};

interface Page {
  items?: { name: string; size: string; updated: string; generation: string }[];
  nextPageToken?: string;
}

/** The tag of an object is its generation. */
async function* objects(bucket: GcsBucket, prefix: string): AsyncGenerator<StoredObject> {
  const fields = 'items(name,size,updated,generation),nextPageToken';
  let pageToken = '';
  do {
    const page = await listed(bucket, { prefix, fields, ...(pageToken && { pageToken }) });
    for (const { name, size, updated, generation } of page.items ?? []) {
      yield { key: name, size: Number(size), modified: Date.parse(updated) * 1000, etag: generation };
    }
    pageToken = page.nextPageToken ?? '';
  } while (pageToken);
}

async function listed(bucket: GcsBucket, query: Record<string, string>): Promise<Page> {
  const answer = await bucket.get('', query);
  const text = await textOf(bucket.ctx, answer, bucket.ctx.config.timeout_seconds);
  try {
    return JSON.parse(text) as Page;
  } catch (error) {
    const message = `${bucket.host} does not respond like Google Cloud Storage. Check the endpoint`;
    throw new ConfigurationError('endpoint_not_gcs', message, { cause: error });
  }
}
