import { findObjects, type StoredObject } from '../objects.ts';
import type { SourceStore } from '../store.ts';
import { Container } from './container.ts';

export const azureSourceStore: SourceStore = {
  find: (ctx) => {
    const container = new Container(ctx);
    return findObjects(
      ctx,
      (prefix) => blobsOf(container, prefix),
      (name, headers) => container.send({ blob: name, headers }),
    );
  },
  placeName: ({ bucket, path = '' }) => `${bucket}/${path}`,
};

interface ListedBlob {
  Name?: string;
  Properties?: Record<string, string>;
}

/** The blobs whose names start with `prefix`, in the order of the names. */
export async function* blobsOf(container: Container, prefix: string): AsyncGenerator<StoredObject> {
  let marker = '';
  do {
    const page = await container.page(prefix, marker);
    const { Blob: found = [] } = (page.Blobs || {}) as { Blob?: ListedBlob[] };
    for (const { Name = '', Properties = {} } of found) {
      const etag = Properties.Etag ?? '';
      yield {
        key: Name,
        size: Number(Properties['Content-Length']),
        modified: Date.parse(Properties['Last-Modified'] ?? '') * 1000,
        // The listing leaves out the quotes.
        etag: etag.startsWith('"') ? etag : `"${etag}"`,
      };
    }
    marker = typeof page.NextMarker === 'string' ? page.NextMarker : '';
  } while (marker);
}
