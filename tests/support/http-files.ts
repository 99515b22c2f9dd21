/** How a server gives a file. */
export interface Manners {
  /** Whether it takes Range requests, and says so. */
  ranges?: boolean;
  head?: boolean;
  modified?: boolean;
  etag?: boolean;
  headers?: Record<string, string>;
  /** Bytes after which each of the first answers breaks off. */
  breakAfter?: number[];
  /** Waits for this before it answers. */
  hold?: Promise<void>;
  /** Credentials that it wants to see. */
  authorization?: string;
  status?: number;
}

export interface FileServer {
  url(name: string): string;
  put(name: string, body: string | Uint8Array<ArrayBuffer>, manners?: Manners): void;
  /** Of all requests: method, name, range. */
  seen: { method: string; name: string; range: string | null; authorization: string | null }[];
  close(): Promise<void>;
}

/** A server of files on a free port, that can behave as badly as real ones. */
export function startHttpFiles(): FileServer {
  const files = new Map<string, { body: Uint8Array<ArrayBuffer>; manners: Manners; modified: Date; version: number }>();
  const seen: FileServer['seen'] = [];
  let version = 0;
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const name = new URL(request.url).pathname.slice(1);
      const range = request.headers.get('range');
      const authorization = request.headers.get('authorization');
      seen.push({ method: request.method, name, range, authorization });
      const file = files.get(name);
      if (!file) return new Response('nothing here', { status: 404 });
      const { body, manners } = file;
      await manners.hold;
      if (manners.authorization && manners.authorization !== authorization) return new Response('', { status: 401 });
      if (request.method === 'HEAD' && manners.head === false) return new Response('', { status: 405 });
      const headers: Record<string, string> = { 'content-type': 'application/octet-stream', ...manners.headers };
      if (manners.modified !== false) headers['last-modified'] = file.modified.toUTCString();
      if (manners.etag !== false) headers.etag = `"${file.version}"`;
      if (manners.ranges !== false) headers['accept-ranges'] = 'bytes';
      if (manners.status) return new Response('', { status: manners.status, headers });
      const [from, to] = manners.ranges === false ? [0, body.length] : span(range, body.length);
      const whole = from === 0 && to === body.length && range === null;
      if (!whole && manners.ranges !== false) headers['content-range'] = `bytes ${from}-${to - 1}/${body.length}`;
      const status = headers['content-range'] ? 206 : 200;
      const cut = request.method === 'GET' ? manners.breakAfter?.shift() : undefined;
      if (cut !== undefined) return broken(body.subarray(from, Math.min(to, from + cut)), { status, headers });
      return new Response(body.slice(from, to), { status, headers });
    },
  });
  return {
    url: (name) => `${server.url.origin}/${name}`,
    put(name, body, manners = {}) {
      version += 1;
      const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
      files.set(name, { body: bytes, manners, modified: new Date(Date.UTC(2026, 0, 1, 0, 0, version)), version });
    },
    seen,
    close: () => server.stop(true),
  };
}

function span(range: string | null, length: number): [number, number] {
  const match = /^bytes=(\d+)-(\d*)$/.exec(range ?? '');
  if (!match) return [0, length];
  return [Number(match[1]), match[2] ? Math.min(Number(match[2]) + 1, length) : length];
}

/** Some bytes, and then the connection is gone. */
function broken(bytes: Uint8Array, init: ResponseInit): Response {
  const stream = new ReadableStream({
    async pull(controller) {
      controller.enqueue(bytes);
      await Bun.sleep(20);
      controller.error(new Error('broken off'));
    },
  });
  return new Response(stream, init);
}
