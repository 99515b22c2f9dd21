import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Stores files that any machine may need, in a folder or in S3. Keys are relative paths with `/`. */
export interface ObjectStore {
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Null if the object does not exist. */
  get(key: string): Promise<ReadableStream<Uint8Array> | null>;
  delete(key: string): Promise<void>;
}

const ANSWER_WITHIN_MS = 10_000;
/** A slow link takes its time for large objects. */
const BYTES_PER_SECOND = 1024 * 1024;

/**
 * @param url `file:///folder` or `s3://key:secret@bucket/prefix?endpoint=https://…&region=…`. Without `key:secret@` the
 * usual variables of S3 clients apply (`AWS_ACCESS_KEY_ID`, …)
 *
 * Keys come from the service, never from users: a key that is not a plain relative path is an Error.
 */
export function openObjectStore(url: string, answer_within_ms = ANSWER_WITHIN_MS): ObjectStore {
  const parsed = new URL(url);
  if (parsed.protocol === 'file:') return limited(openFolder(fileURLToPath(parsed)), answer_within_ms);
  if (parsed.protocol === 's3:') return limited(openBucket(parsed), answer_within_ms);
  throw new Error(`OBJECT_STORE_URL: unsupported scheme ${parsed.protocol}`);
}

/** Where the store's secret is sent. Null for a folder. */
export function hostOfStore(url: string): string | null {
  const { protocol, hostname, searchParams } = new URL(url);
  if (protocol === 'file:') return null;
  const endpoint = searchParams.get('endpoint');
  return endpoint === null ? `${hostname}.s3.amazonaws.com` : new URL(endpoint).host;
}

/** The store, with `before` in front of each use. */
export const preceded = (store: ObjectStore, before: () => Promise<void>): ObjectStore => ({
  put: async (key, bytes) => {
    await before();
    await store.put(key, bytes);
  },
  get: async (key) => {
    await before();
    return store.get(key);
  },
  delete: async (key) => {
    await before();
    await store.delete(key);
  },
});

/** Limits the time of each call: a store that accepts a request and never answers would hold its caller for ever. */
function limited(store: ObjectStore, ms: number): ObjectStore {
  return {
    put: (key, bytes) => within(ms + (bytes.length / BYTES_PER_SECOND) * 1000, () => store.put(key, bytes)),
    get: (key) => within(ms, () => store.get(key)),
    delete: (key) => within(ms, () => store.delete(key)),
  };
}

async function within<Result>(ms: number, work: () => Promise<Result>): Promise<Result> {
  const timeout = Promise.withResolvers<never>();
  const seconds = Math.round(ms / 1000);
  const timer = setTimeout(
    () => timeout.reject(new Error(`The object store did not answer within ${seconds} s. Check OBJECT_STORE_URL`)),
    ms,
  );
  try {
    return await Promise.race([work(), timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function openFolder(root: string): ObjectStore {
  return {
    put: async (key, bytes) => {
      const path = join(root, checkedKey(key));
      const draft = `${path}.${randomUUID()}.draft`;
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      try {
        await Bun.write(draft, bytes);
        await rename(draft, path);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },
    get: async (key) => {
      const file = Bun.file(join(root, checkedKey(key)));
      return (await file.exists()) ? file.stream() : null;
    },
    delete: async (key) => {
      await rm(join(root, checkedKey(key)), { force: true });
    },
  };
}

function openBucket(url: URL): ObjectStore {
  const prefix = decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, '');
  const client = new Bun.S3Client({
    bucket: url.hostname,
    accessKeyId: decodeURIComponent(url.username) || undefined,
    secretAccessKey: decodeURIComponent(url.password) || undefined,
    endpoint: url.searchParams.get('endpoint') ?? undefined,
    region: url.searchParams.get('region') ?? undefined,
  });
  const full = (key: string) => (prefix ? `${prefix}/${checkedKey(key)}` : checkedKey(key));
  return {
    put: async (key, bytes) => {
      await client.write(full(key), bytes);
    },
    get: async (key) => ((await client.exists(full(key))) ? client.file(full(key)).stream() : null),
    delete: async (key) => {
      await client.delete(full(key));
    },
  };
}

function checkedKey(key: string): string {
  const segments = key.split('/');
  if (!segments.every((segment) => /^[\w.=@-]+$/.test(segment) && !/^\.+$/.test(segment))) {
    throw new Error(`Invalid object key: ${JSON.stringify(key)}`);
  }
  return key;
}
