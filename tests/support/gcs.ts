import { createVerify, generateKeyPairSync } from 'node:crypto';
import { startS3 } from './s3.ts';

export interface GcsServer {
  /** Settings of the connector `file` for the bucket `data`. */
  settings: Record<string, unknown>;
  keys(prefix?: string): Promise<string[]>;
  get(key: string): Promise<string | null>;
  put(key: string, text: string): Promise<void>;
  /** Whether there is an upload in parts that takes another one. */
  isOpenUpload(key: string, id: string): Promise<boolean>;
  /** Ends all tokens that were issued, as if an hour had passed. */
  endTokens(): void;
  close(): Promise<void>;
}

const SCOPES: Record<string, 'read' | 'write'> = {
  'https://www.googleapis.com/auth/devstorage.read_only': 'read',
  'https://www.googleapis.com/auth/devstorage.read_write': 'write',
};

/**
 * The JSON API for reading and the XML API for writing in front of a store with multipart uploads. It checks the tokens,
 * which it issues to a service account, and their scopes.
 */
export async function startGcs(): Promise<GcsServer> {
  const store = await startS3();
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  const tokens = new Map<string, 'read' | 'write'>();
  let issued = 0;
  const issue = (assertion: string): Response => {
    const [head = '', body = '', signature = ''] = assertion.split('.');
    const verified = createVerify('sha256').update(`${head}.${body}`).verify(publicKey, signature, 'base64url');
    const { scope } = JSON.parse(Buffer.from(body, 'base64url').toString());
    const right = SCOPES[scope];
    if (!verified || !right) return Response.json({ error: 'invalid_grant' }, { status: 400 });
    issued += 1;
    tokens.set(`Bearer token-${issued}`, right);
    return Response.json({ access_token: `token-${issued}`, expires_in: 3599, token_type: 'Bearer' });
  };
  const listed = async (prefix: string): Promise<Response> => {
    const items = await Promise.all(
      (await store.keys(prefix)).map(async (name) => {
        const text = (await store.get(name)) ?? '';
        const size = String(Buffer.byteLength(text));
        return { name, size, updated: '2026-01-01T00:00:00.000Z', generation: String(Bun.hash.crc32(text)) };
      }),
    );
    return Response.json({ items });
  };
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const url = new URL(request.url);
      if (url.pathname === '/token') return issue(new URLSearchParams(await request.text()).get('assertion') ?? '');
      const right = tokens.get(request.headers.get('authorization') ?? '');
      const isJson = url.pathname.startsWith('/storage/v1/');
      if (!right) return refusal(401, 'AuthenticationRequired', isJson);
      if (isJson) {
        if (url.pathname === '/storage/v1/b/data/o') return listed(url.searchParams.get('prefix') ?? '');
        const key = decodeURIComponent(url.pathname.slice('/storage/v1/b/data/o/'.length));
        return forwarded(store, new Request(`http://x/data/${key.split('/').map(encodeURIComponent).join('/')}`));
      }
      if (right !== 'write') return refusal(403, 'AccessDenied', false);
      if (request.method === 'POST' && request.headers.get('content-length') === null) {
        return new Response('', { status: 411 });
      }
      return forwarded(store, request);
    },
  });
  const service_account_key = JSON.stringify({
    type: 'service_account',
    client_email: 'loader@example.com',
    private_key: privateKey,
    private_key_id: 'k1',
    token_uri: `${server.url.origin}/token`,
  });
  return {
    settings: { location: 'gcs', bucket: 'data', service_account_key, endpoint: server.url.origin },
    keys: (prefix) => store.keys(prefix),
    get: (key) => store.get(key),
    put: (key, text) => store.put(key, text),
    isOpenUpload: (key, id) => store.isOpenUpload(key, id),
    endTokens: () => tokens.clear(),
    async close() {
      await server.stop(true);
      await store.close();
    },
  };
}

const refusal = (status: number, code: string, isJson: boolean): Response =>
  isJson
    ? Response.json({ error: { code: status, message: code } }, { status })
    : new Response(`<?xml version='1.0' encoding='UTF-8'?><Error><Code>${code}</Code></Error>`, { status });

/** The store of objects itself takes any signature. */
async function forwarded(store: { settings: Record<string, unknown> }, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const { method } = request;
  const headers = new Headers(request.headers);
  for (const name of ['authorization', 'host', 'content-length', 'accept-encoding']) headers.delete(name);
  const body = method === 'GET' || method === 'HEAD' ? undefined : await request.bytes();
  const answer = await fetch(`${String(store.settings.endpoint)}${pathname}${search}`, { method, headers, body });
  return new Response(method === 'HEAD' ? null : await answer.bytes(), {
    status: answer.status,
    headers: answer.headers,
  });
}
