import { Glob } from 'bun';
import { ConfigurationError } from '../../../contract/errors.ts';
import { remoteContent } from './http-content.ts';
import type { NetworkContext } from './http-request.ts';
import { literalStart, MAX_FILES, WILDCARD } from './local-files.ts';
import type { FoundFile } from './store.ts';

/** An object in a bucket or container. */
export interface StoredObject {
  key: string;
  size: number;
  /** Microseconds since 1970. */
  modified: number;
  etag: string;
}

type ObjectContext = NetworkContext & { config: { path?: string; timeout_seconds: number } };

/**
 * The objects that the path or pattern of the settings names, sorted by key.
 * @param list the objects whose keys start with a prefix. @param get one object, if it still has the tag in `if-match`
 */
export async function findObjects(
  ctx: ObjectContext,
  list: (prefix: string) => AsyncIterable<StoredObject>,
  get: (key: string, headers: Record<string, string>) => Promise<Response>,
): Promise<FoundFile[]> {
  const { path: pattern = '', timeout_seconds } = ctx.config;
  const wanted = pattern.replace(/^\.?\/+/, '');
  const glob = WILDCARD.test(wanted) ? new Glob(wanted) : null;
  const found: FoundFile[] = [];
  for await (const { key, size, modified, etag } of list(literalStart(wanted))) {
    const matches = glob ? glob.match(key) : key === wanted;
    // A key that ends in a slash stands for a folder.
    if (!matches || key.endsWith('/') || key.split('/').includes('_pipeline_state')) continue;
    const remote = remoteContent({
      name: key,
      ctx,
      timeout_seconds,
      version: etag,
      has_ranges: true,
      get: (range) => get(key, { 'if-match': etag, ...(range !== null && { range }) }),
    });
    found.push({ name: key, path: '', size, modified, tag: etag, remote });
    if (found.length > MAX_FILES)
      throw new ConfigurationError('too_many_files', `"${pattern}" matches more than ${MAX_FILES} files`);
  }
  return found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
