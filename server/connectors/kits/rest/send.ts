import { gunzipSync } from 'node:zlib';
import { createRedactor, REDACTED, type Redactor } from '../../../platform/redaction/redact.ts';
import type { ConnectorContext } from '../../contract/connector.ts';
import { ConfigurationError, DataError } from '../../contract/errors.ts';
import { networkError, serverMessage, timeoutError } from './failures.ts';
import type { RateLimiter } from './rate-limiter.ts';
import { isZip, unzip } from './bodies/zip.ts';
import type { HttpRequest } from './request.ts';
import type { Signer } from './signing/signer.ts';

export interface HttpResponse {
  status: number;
  headers: Headers;
  text: string;
  /** Of a ZIP archive: its files, of which `text` has all. */
  files?: string[];
  bytes: number;
  /** The final URL, after redirects. */
  url: URL;
}

export interface ExchangeOptions {
  signer: Signer;
  limiter: RateLimiter;
  /** No message may contain any text in it, however deeply nested. */
  secrets: unknown;
  /** Origins that a redirect may lead to. */
  origins: ReadonlySet<string>;
  timeout_seconds: number;
  max_bytes: number;
  /** Whether responses may be ZIP archives. */
  unpacks_zip?: boolean;
}

type Context = Pick<ConnectorContext<unknown>, 'fetch' | 'signal'>;

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
const MAX_REDIRECTS = 5;

/** Sends one request, signed and rate limited, and reads the whole response. */
export class Exchange {
  readonly #redactor: Redactor;

  constructor(
    private readonly ctx: Context,
    private readonly options: ExchangeOptions,
  ) {
    this.#redactor = createRedactor(textsIn(options.secrets));
  }

  /** @throws ConnectorError when there is no response, or the signal's reason */
  async send(request: HttpRequest, token: string | null): Promise<HttpResponse> {
    try {
      return await this.options.limiter.run(this.ctx.signal, () => this.#follow(request, token));
    } catch (error) {
      if (this.ctx.signal.aborted) throw this.ctx.signal.reason;
      throw networkError(error, request.url.host);
    }
  }

  /** The error message in a response body, secrets removed. */
  messageOf({ text, headers }: HttpResponse, token: string | null): string {
    return serverMessage(text, headers.get('content-type'), (found) => this.redact(found, token));
  }

  /** @param token of the request; it is not among the secrets */
  redact(text: string, token: string | null = null): string {
    return this.#redactor.text(token ? text.replaceAll(token, REDACTED) : text);
  }

  async #follow(request: HttpRequest, token: string | null): Promise<HttpResponse> {
    let { url } = request;
    for (let redirects = 0; ; redirects += 1) {
      const response = await this.#once({ ...request, url }, token);
      const location = response.status >= 300 && response.status < 400 ? response.headers.get('location') : null;
      if (location === null || request.method !== 'GET') return response;
      const next = URL.parse(location, url.href);
      const isAllowed = next !== null && (this.options.origins.has(next.origin) || mayLeaveTo(request, next));
      if (!isAllowed || redirects >= MAX_REDIRECTS) {
        const target = next?.host ?? 'an invalid URL';
        throw new ConfigurationError('redirect_refused', `${url.host} redirects to ${target}, which is not allowed`);
      }
      url = next;
    }
  }

  async #once(request: HttpRequest, token: string | null): Promise<HttpResponse> {
    const { signal } = this.ctx;
    const { timeout_seconds, max_bytes } = this.options;
    const { url } = request;
    const leaves = request.may_leave === true && !this.options.origins.has(url.origin);
    const signed = leaves
      ? { url, headers: { accept: '*/*' }, body: undefined }
      : await this.options.signer.sign(request, token);
    const abort = new AbortController();
    const stop = () => abort.abort(signal.reason);
    const timer = setTimeout(() => abort.abort(timeoutError(url.host, timeout_seconds)), timeout_seconds * 1000);
    signal.addEventListener('abort', stop, { once: true });
    try {
      const init = {
        method: request.method,
        headers: signed.headers,
        body: signed.body ?? request.body,
        signal: abort.signal,
      };
      const response = await this.ctx.fetch(signed.url.href, { ...init, redirect: 'manual' });
      const body = await readBody(response, max_bytes);
      const { status, headers } = response;
      return { status, headers, ...this.#decode(body), bytes: body.length, url };
    } catch (error) {
      abort.abort(error);
      throw abort.signal.reason;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
    }
  }

  #decode(body: Uint8Array): Pick<HttpResponse, 'text' | 'files'> {
    const { max_bytes, unpacks_zip } = this.options;
    if (!unpacks_zip || !isZip(body)) return { text: decode(body, max_bytes) };
    const files = unzip(body, max_bytes).map((file) => decode(file, max_bytes));
    return { text: files.join('\n'), files };
  }
}

/** Never from https to plain http. */
const mayLeaveTo = ({ may_leave, url }: HttpRequest, next: URL) =>
  may_leave === true && (next.protocol === 'https:' || next.protocol === url.protocol);

async function readBody(response: Response, limit: number): Promise<Uint8Array> {
  const announced = Number(response.headers.get('content-length') ?? Number.NaN);
  if (announced > limit) {
    await response.body?.cancel();
    throw tooLarge(limit);
  }
  if (announced >= 0 && !response.headers.has('content-encoding')) return new Uint8Array(await response.arrayBuffer());
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > limit) throw tooLarge(limit);
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, bytes);
}

const tooLarge = (limit: number) =>
  new ConfigurationError('page_too_large', `A response is larger than ${limit} bytes. Request smaller pages.`);

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decode(body: Uint8Array, limit: number): string {
  let plain = body;
  if (body[0] === 0x1f && body[1] === 0x8b) {
    try {
      plain = gunzipSync(body, { maxOutputLength: limit });
    } catch (error) {
      throw error instanceof RangeError
        ? tooLarge(limit)
        : new DataError('malformed_gzip', 'A response is not valid gzip');
    }
  }
  try {
    return utf8.decode(plain);
  } catch {
    throw new DataError('malformed_text', 'A response is not valid UTF-8');
  }
}
