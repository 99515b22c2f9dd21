import { gunzipSync } from 'node:zlib';
import { createRedactor, type Redactor } from '../../lib/redact.ts';
import type { ConnectorContext } from '../define.ts';
import { ConfigurationError, type ConnectorError, DataError, RateLimitedError } from '../errors.ts';
import type { Signer } from './authentication.ts';
import { networkError, serverMessage, statusError, timeoutError } from './failures.ts';
import { type Pace, pause } from './pacing.ts';
import { askedWait, backoff, isExhausted } from './waiting.ts';

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

export interface ClientOptions {
  signer: Signer;
  pace: Pace;
  /** Values that no message may show. */
  secrets: string[];
  /** Origins that a redirect may lead to. */
  origins: ReadonlySet<string>;
  max_attempts: number;
  base_seconds: number;
  /** What all pauses that the service asks for may take together, for one call. */
  max_wait_seconds: number;
  timeout_seconds: number;
  max_bytes: number;
}

type Context = Pick<ConnectorContext<unknown>, 'fetch' | 'signal' | 'now' | 'rateLimited'>;
const MOST_REDIRECTS = 5;
const DEFAULT_WAIT_MS = 60_000;

/** Sends requests: signed, paced, tried again when that helps, its errors in the engine's terms. */
export class HttpClient {
  readonly #redactor: Redactor;
  #pausedUntil = 0;

  constructor(
    private readonly ctx: Context,
    private readonly options: ClientOptions,
  ) {
    this.#redactor = createRedactor(options.secrets);
  }

  /** @param accept statuses that are answers too and no errors. @throws ConnectorError, or the signal's reason */
  async send(call: Call, accept: readonly number[] = []): Promise<Answer> {
    const { max_attempts, base_seconds, max_wait_seconds } = this.options;
    let waited = 0;
    let renewed = false;
    for (let attempt = 1; ; ) {
      await this.#awaitQuota();
      const token = await this.options.signer.current();
      const { answer, error } = await this.#try(call, token, accept);
      if (!error) {
        this.#noteQuota(answer.headers);
        return answer;
      }
      if (answer?.status === 401 && !renewed && this.options.signer.renew(token)) {
        renewed = true;
        continue;
      }
      const limited = answer !== null && isLimited(answer);
      if (!error.retryable && !limited) throw error;
      const asked = answer && (limited || answer.status === 503) ? askedWait(answer.headers, this.ctx.now()) : null;
      if (asked !== null) {
        waited += asked;
        if (waited > max_wait_seconds * 1000) throw this.#limited(asked, error);
        await this.#wait(asked);
        continue;
      }
      if (attempt >= max_attempts) throw limited ? this.#limited(DEFAULT_WAIT_MS, error) : error;
      await pause(backoff(attempt, base_seconds), this.ctx.signal);
      attempt += 1;
    }
  }

  #limited(ms: number, error: ConnectorError): ConnectorError {
    return new RateLimitedError(new Date(this.ctx.now().getTime() + ms), error.message);
  }

  async #wait(ms: number): Promise<void> {
    // A hair more: a pause of zero would ask again at once, for ever.
    const rounded = Math.max(ms, 50);
    this.ctx.rateLimited(new Date(this.ctx.now().getTime() + rounded));
    await pause(rounded, this.ctx.signal);
  }

  #noteQuota(headers: Headers): void {
    if (!isExhausted(headers)) return;
    const ms = askedWait(headers, this.ctx.now());
    if (ms !== null) this.#pausedUntil = performance.now() + ms;
  }

  /** The last answer said that nothing is left: better wait than be refused. */
  async #awaitQuota(): Promise<void> {
    const ms = this.#pausedUntil - performance.now();
    if (ms <= 0) return;
    this.#pausedUntil = 0;
    if (ms > this.options.max_wait_seconds * 1000) {
      throw new RateLimitedError(new Date(this.ctx.now().getTime() + ms), 'The quota of the service is used up');
    }
    await this.#wait(ms);
  }

  async #try(call: Call, token: string | null, accept: readonly number[]): Promise<Tried> {
    const { url } = call;
    let answer: Answer;
    try {
      answer = await this.options.pace.run(this.ctx.signal, () => this.#follow(call, token));
    } catch (error) {
      if (this.ctx.signal.aborted) throw this.ctx.signal.reason;
      return { answer: null, error: networkError(error, url.host) };
    }
    if ((answer.status >= 200 && answer.status < 300) || accept.includes(answer.status)) return { answer, error: null };
    const said = serverMessage(answer.text, answer.headers.get('content-type'));
    const message = this.#redactor.text(token ? said.replaceAll(token, '[redacted]') : said);
    return {
      answer,
      error: statusError(answer.status, { where: `${call.method} ${url.host}${url.pathname}`, message }),
    };
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

type Tried = { answer: Answer; error: null } | { answer: Answer | null; error: ConnectorError };

/** GitHub, for one, says 403 when its quota is used up. */
const isLimited = ({ status, headers }: Answer) =>
  status === 429 || (status === 403 && (isExhausted(headers) || headers.has('retry-after')));

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
