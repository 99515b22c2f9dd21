import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** How a server serves a file. */
export interface Manners {
  /** Whether it accepts Range requests and announces that. */
  ranges?: boolean;
  head?: boolean;
  modified?: boolean;
  etag?: boolean;
  headers?: Record<string, string>;
  /** Bytes after which each of the first answers breaks off. */
  breakAfter?: number[];
  /** Waits for this before it answers. */
  hold?: Promise<void>;
  /** Required credentials. */
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

/** A file server on a free port that can misbehave as real ones do. */
export async function startHttpFiles(): Promise<FileServer> {
  const files = new Map<string, { body: Uint8Array<ArrayBuffer>; manners: Manners; modified: Date; version: number }>();
  const seen: FileServer['seen'] = [];
  let version = 0;
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const method = request.method ?? '';
    const name = decodeURIComponent((request.url ?? '').slice(1));
    const { range = null, authorization = null } = request.headers;
    seen.push({ method, name, range, authorization });
    const end = (status: number, headers: Record<string, string> = {}) => response.writeHead(status, headers).end();
    const file = files.get(name);
    if (!file) return void end(404);
    const { body, manners } = file;
    await manners.hold;
    if (manners.authorization && manners.authorization !== authorization) return void end(401);
    if (method === 'HEAD' && manners.head === false) return void end(405);
    const headers: Record<string, string> = { 'content-type': 'application/octet-stream', ...manners.headers };
    if (manners.modified !== false) headers['last-modified'] = file.modified.toUTCString();
    if (manners.etag !== false) headers.etag = `"${file.version}"`;
    if (manners.ranges !== false) headers['accept-ranges'] = 'bytes';
    if (manners.status) return void end(manners.status, headers);
    const part = manners.ranges === false ? null : span(range, body.length);
    const [from, to] = part ?? [0, body.length];
    if (part) headers['content-range'] = `bytes ${from}-${to - 1}/${body.length}`;
    headers['content-length'] = String(to - from);
    response.writeHead(part ? 206 : 200, headers);
    const cut = method === 'GET' ? manners.breakAfter?.shift() : undefined;
    if (method === 'HEAD') response.end();
    else if (cut === undefined || cut >= to - from) response.end(body.subarray(from, to));
    else response.write(body.subarray(from, from + cut), () => response.socket?.destroy());
  }
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: (name) => `http://127.0.0.1:${port}/${name}`,
    put(name, body, manners = {}) {
      version += 1;
      const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
      files.set(name, { body: bytes, manners, modified: new Date(Date.UTC(2026, 0, 1, 0, 0, version)), version });
    },
    seen,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function span(range: string | null, length: number): [number, number] | null {
  const match = /^bytes=(\d+)-(\d*)$/.exec(range ?? '');
  if (!match) return null;
  return [Number(match[1]), match[2] ? Math.min(Number(match[2]) + 1, length) : length];
}
