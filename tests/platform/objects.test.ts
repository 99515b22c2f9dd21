import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openObjectStore } from '../../server/platform/object-store.ts';
import { temporaryFolder } from '../support/postgres.ts';

const folder = temporaryFolder();
const bytes = (text: string) => new TextEncoder().encode(text);

describe('a folder as object store', () => {
  const root = join(folder, 'objects with a space');
  const store = openObjectStore(pathToFileURL(root).href);

  test('returns the last object stored, and nothing after a delete', async () => {
    await store.put('a/b/c.jsonl.gz', bytes('first, and longer'));
    await store.put('a/b/c.jsonl.gz', bytes('second'));
    expect(await new Response(await store.get('a/b/c.jsonl.gz')).text()).toBe('second');
    expect(readdirSync(join(root, 'a/b'))).toEqual(['c.jsonl.gz']);
    await store.delete('a/b/c.jsonl.gz');
    expect(await store.get('a/b/c.jsonl.gz')).toBeNull();
    await store.delete('a/b/c.jsonl.gz');
  });

  test.each(['../out', 'a/../../out', '/etc/out', '', 'a//b', './a', 'a/.', 'a/b/', 'a\\..\\b', 'a\0b', 'a/...'])(
    'rejects the key %j and creates nothing',
    async (key) => {
      for (const work of [() => store.put(key, bytes('x')), () => store.get(key), () => store.delete(key)]) {
        await expect(work()).rejects.toThrow('Invalid object key');
      }
      expect(existsSync(join(folder, 'out'))).toBeFalse();
    },
  );
});

describe('a bucket as object store', () => {
  test('is used below its prefix, with the credentials and the endpoint of the URL', async () => {
    const objects = new Map<string, Uint8Array>();
    const authorizations = new Set<string>();
    // The server side, called by the real S3 client.
    using server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: async (request) => {
        const path = decodeURIComponent(new URL(request.url).pathname);
        const [, id, region] =
          /Credential=(.*)\/\d{8}\/([^/]+)\//.exec(request.headers.get('authorization') ?? '') ?? [];
        authorizations.add(`${id} ${region}`);
        if (request.method === 'PUT') objects.set(path, await request.bytes());
        if (request.method === 'DELETE') objects.delete(path);
        const found = objects.get(path);
        if (request.method === 'DELETE') return new Response(null, { status: 204 });
        return found ? new Response(found) : new Response(null, { status: 404 });
      },
    });
    const store = openObjectStore(
      `s3://key%2Fid:sec%2Fret@bucket/some/prefix?endpoint=http://127.0.0.1:${server.port}&region=eu-west-9`,
    );
    await store.put('run/1.gz', bytes('content'));
    expect([...objects.keys()]).toEqual(['/bucket/some/prefix/run/1.gz']);
    expect(await new Response(await store.get('run/1.gz')).text()).toBe('content');
    expect(await store.get('run/2.gz')).toBeNull();
    await store.delete('run/1.gz');
    expect(objects.size).toBe(0);
    await expect(store.put('../1.gz', bytes('x'))).rejects.toThrow('Invalid object key');
    expect([...authorizations]).toEqual(['key/id eu-west-9']);
  });
});
