import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
// @ts-expect-error -- it comes without types
import S3rverUntyped from '@20minutes/s3rver';
import { startFauxqs } from 'fauxqs';
import { AwsClient } from 'aws4fetch';

const S3rver = S3rverUntyped as new (options: object) => { run(): Promise<{ port: number }>; close(): Promise<void> };

export interface S3Server {
  /** Settings of the connector `file` for the bucket `data`. */
  settings: Record<string, unknown>;
  put(key: string, body: string | Uint8Array<ArrayBuffer>, headers?: Record<string, string>): Promise<void>;
  /** The text of an object; null when there is none. */
  get(key: string): Promise<string | null>;
  delete(key: string): Promise<void>;
  keys(prefix?: string): Promise<string[]>;
  /** Whether there is an upload in parts that takes another one. */
  isOpenUpload(key: string, id: string): Promise<boolean>;
  close(): Promise<void>;
}

const KEYS = { access_key_id: 'S3RVER', secret_access_key: 'S3RVER' };

/** A store that supports multipart uploads, ranges, conditions and pages of listings, and accepts any key. */
export async function startS3(): Promise<S3Server> {
  const server = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
  server.createBucket('data');
  return { ...(await opened(`http://127.0.0.1:${server.port}`)), close: () => server.stop() };
}

/** A store that checks signatures but cannot abort an upload. */
export async function startSigningS3(): Promise<S3Server> {
  const directory = await mkdtemp(join(tmpdir(), 'data-pipelines-s3-'));
  const server = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory,
    configureBuckets: [{ name: 'data', configs: [] }],
  });
  const { port } = await server.run();
  const close = async () => {
    await server.close();
    rmSync(directory, { recursive: true, force: true });
  };
  return { ...(await opened(`http://127.0.0.1:${port}`)), close };
}

async function opened(endpoint: string): Promise<Omit<S3Server, 'close'>> {
  const client = new AwsClient({
    accessKeyId: KEYS.access_key_id,
    secretAccessKey: KEYS.secret_access_key,
    service: 's3',
    region: 'us-east-1',
    retries: 0,
  });
  const url = (key: string) => `${endpoint}/data/${key.split('/').map(encodeURIComponent).join('/')}`;
  const send = async (method: string, key: string, init: RequestInit = {}) => {
    const answer = await client.fetch(url(key), { method, ...init });
    if (!answer.ok && answer.status !== 404)
      throw new Error(`${method} ${key}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  return {
    settings: { location: 's3', bucket: 'data', endpoint, ...KEYS },
    put: async (key, body, headers) => {
      await send('PUT', key, { body, headers });
    },
    async get(key) {
      const answer = await send('GET', key);
      return answer.status === 404 ? null : answer.text();
    },
    delete: async (key) => {
      await send('DELETE', key);
    },
    async isOpenUpload(key, id) {
      const query = new URLSearchParams({ partNumber: '9999', uploadId: id });
      const answer = await client.fetch(`${url(key)}?${query.toString()}`, { method: 'PUT', body: 'x' });
      return answer.ok;
    },
    async keys(prefix = '') {
      const query = new URLSearchParams({ 'list-type': '2', prefix });
      const answer = await client.fetch(`${endpoint}/data?${query.toString()}`);
      return [...(await answer.text()).matchAll(/<Key>([^<]*)<\/Key>/g)].map((match) => match[1] ?? '').toSorted();
    },
  };
}
