import { gunzipSync } from 'node:zlib';
import { createRedactor, type Redactor } from '../../../platform/redact.ts';
import type { ConnectorContext } from '../../contract/connector.ts';
import { ConfigurationError, DataError } from '../../contract/errors.ts';
import type { Signer } from './authentication.ts';
import { networkError, serverMessage, timeoutError } from './failures.ts';
import type { Pace } from './rate-limiter.ts';

export interface Call {
  method: string;
  url: URL;
  headers: Record<string, string>;
  body: string | null;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  bytes: number;
  /** Where it came from, after redirects. */
  url: URL;
}

export interface ExchangeOptions {
  signer: Signer;
  pace: Pace;
  /** Values that no message may show. */
  secrets: string[];
  /** Origins that a redirect may lead to. */
  origins: ReadonlySet<string>;
  timeout_seconds: number;
  max_bytes: number;
}

type Context = Pick<ConnectorContext<unknown>, 'fetch' | 'signal'>;
const MOST_REDIRECTS = 5;

/** For a request that somebody waits for: two of them fit into the 20 seconds that a test of settings has. */
export const HURRIED_SECONDS = 9;

/** Sends one request, signed, in its turn, and takes its whole answer. */
export class Exchange {
  readonly #redactor: Redactor;

  constructor(
    private readonly ctx: Context,
    private readonly options: ExchangeOptions,
  ) {
    this.#redactor = createRedactor(options.secrets);
  }

  /** @throws ConnectorError when no answer came, or the signal's reason */
  async send(call: Call, token: string | null): Promise<Answer> {
    try {
      return await this.options.pace.run(this.ctx.signal, () => this.#follow(call, token));
    } catch (error) {
      if (this.ctx.signal.aborted) throw this.ctx.signal.reason;
      throw networkError(error, call.url.host);
    }
  }

  /** The sentence that a body holds, without secrets. */
  messageOf({ text, headers }: Answer, token: string | null): string {
    const said = serverMessage(text, headers.get('content-type'));
    return this.redact(token ? said.replaceAll(token, '[redacted]') : said);
  }

  redact(text: string): string {
    return this.#redactor.text(text);
  }

  async #follow(call: Call, token: string | null): Promise<Answer> {
    let { url } = call;
    for (let redirects = 0; ; redirects += 1) {
      const answer = await this.#once({ ...call, url }, token);
      const location = answer.status >= 300 && answer.status < 400 ? answer.headers.get('location') : null;
      if (location === null || call.method !== 'GET') return answer;
      const next = URL.parse(location, url.href);
      if (!next || !this.options.origins.has(next.origin) || redirects >= MOST_REDIRECTS) {
        throw new ConfigurationError('redirect_refused', `${url.host} redirects to ${next?.host ?? 'no address'}`);
      }
      url = next;
    }
  }

  async #once(call: Call, token: string | null): Promise<Answer> {
    const { signal } = this.ctx;
    const { timeout_seconds, max_bytes } = this.options;
    const signed = this.options.signer.sign(call, token);
    const abort = new AbortController();
    const stop = () => abort.abort(signal.reason);
    const timer = setTimeout(() => abort.abort(timeoutError(call.url.host, timeout_seconds)), timeout_seconds * 1000);
    signal.addEventListener('abort', stop, { once: true });
    try {
      const init = { method: call.method, headers: signed.headers, body: call.body, signal: abort.signal };
      const response = await this.ctx.fetch(signed.url.href, { ...init, redirect: 'manual' });
      const body = await readBody(response, max_bytes);
      return {
        status: response.status,
        headers: response.headers,
        text: decode(body, max_bytes),
        bytes: body.length,
        url: call.url,
      };
    } catch (error) {
      abort.abort(error);
      throw abort.signal.reason;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
    }
  }
}

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
  new ConfigurationError('page_too_large', `An answer is larger than ${limit} bytes: ask for smaller pages`);

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decode(body: Uint8Array, limit: number): string {
  let plain = body;
  if (body[0] === 0x1f && body[1] === 0x8b) {
    try {
      plain = gunzipSync(body, { maxOutputLength: limit });
    } catch (error) {
      throw error instanceof RangeError ? tooLarge(limit) : new DataError('malformed_gzip', 'An answer is broken gzip');
    }
  }
  try {
    return utf8.decode(plain);
  } catch {
    throw new DataError('malformed_text', 'An answer is no text in UTF-8');
  }
}
