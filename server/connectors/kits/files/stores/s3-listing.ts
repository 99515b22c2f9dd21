import { Glob } from 'bun';
import { ConfigurationError } from '../../../contract/errors.ts';
import { remoteContent } from './http-content.ts';
import { literalStart, MAX_FILES, WILDCARD } from './local-files.ts';
import { Bucket } from './s3-client.ts';
import type { FoundFile, SourceStore } from './store.ts';

export const s3SourceStore: SourceStore = {
  find: (ctx) => findObjects(new Bucket(ctx, ctx.config), ctx.config.path ?? ''),
  placeName: ({ bucket, path = '' }) => `${bucket}/${path}`,
};

export interface ListedObject {
  key: string;
  size: number;
  /** Microseconds since 1970. */
  modified: number;
  etag: string;
}

/** The objects whose keys start with `prefix`, in the order of the keys. */
export async function* listObjects(bucket: Bucket, prefix: string): AsyncGenerator<ListedObject> {
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

/** The objects that a key or pattern names, sorted by key. */
async function findObjects(bucket: Bucket, pattern: string): Promise<FoundFile[]> {
  const wanted = pattern.replace(/^\.?\/+/, '');
  const glob = WILDCARD.test(wanted) ? new Glob(wanted) : null;
  const found: FoundFile[] = [];
  for await (const object of listObjects(bucket, literalStart(wanted))) {
    const matches = glob ? glob.match(object.key) : object.key === wanted;
    // A key that ends in a slash stands for a folder.
    if (!matches || object.key.endsWith('/') || object.key.split('/').includes('_pipeline_state')) continue;
    found.push(foundFile(bucket, object));
    if (found.length > MAX_FILES)
      throw new ConfigurationError('too_many_files', `"${pattern}" matches more than ${MAX_FILES} files`);
  }
  return found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function foundFile(bucket: Bucket, { key, size, modified, etag }: ListedObject): FoundFile {
  const { ctx, settings } = bucket;
  const get = (range: string | null) =>
    bucket.send({ method: 'GET', key, headers: { 'if-match': etag, ...(range !== null && { range }) } });
  const { timeout_seconds } = settings;
  const remote = remoteContent({ name: key, ctx, timeout_seconds, version: etag, has_ranges: true, get });
  return { name: key, path: '', size, modified, tag: etag, remote };
}
