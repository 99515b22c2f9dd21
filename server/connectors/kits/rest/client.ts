import type { ConnectorContext } from '../../contract/connector.ts';
import { ConfigurationError, ConnectorError, RateLimitedError, RetryableError } from '../../contract/errors.ts';
import { Exchange, type ExchangeOptions, type HttpResponse } from './send.ts';
import { shortened, statusError } from './failures.ts';
import { pause } from './rate-limiter.ts';
import { type Failure, type Patience, type Pause, type RequestAttempt, withRetries } from './retry.ts';
import { backoff, isExhausted, requestedWait } from './retry-after.ts';
import type { HttpRequest } from './request.ts';

export interface ClientOptions extends ExchangeOptions, Patience {
  /** First pause of the backoff. */
  base_seconds: number;
}

/** An error in the body of a response. */
export interface DescribedError {
  message: string;
  retryable: boolean;
}

/** Which responses are not errors. */
interface Accept {
  /** Statuses besides 2xx. */
  statuses?: readonly number[];
  /** The error that a response with the status of a success describes; null: none. */
  errorIn?(response: HttpResponse): DescribedError | null;
}

type Context = Pick<ConnectorContext<unknown>, 'fetch' | 'signal' | 'now' | 'rateLimited'>;
const DEFAULT_WAIT_MS = 60_000;
/** A pause of zero would send the next request at once, forever. */
const MIN_WAIT_MS = 50;

interface FailedSend extends Failure {
  /** Null: there was no response. */
  response: HttpResponse | null;
}

/** Sends requests: signed, rate limited, retried where a retry may help, with the errors that the engine understands. */
export class HttpClient {
  readonly #exchange: Exchange;
  #pausedUntil = 0;

  constructor(
    private readonly ctx: Context,
    private readonly options: ClientOptions,
  ) {
    this.#exchange = new Exchange(ctx, options);
  }

  /** @throws ConnectorError, or the signal's reason */
  async send(request: HttpRequest, accept: Accept = {}): Promise<HttpResponse> {
    let waited = 0;
    return await withRetries(
      this.ctx.signal,
      () => this.#try(request, accept),
      (failed, attempt) => {
        const pausing = this.#pauseAfter(failed, { attempt, waited });
        if (!pausing.counts) waited += pausing.ms;
        return pausing;
      },
    );
  }

  /** A text without the secrets of the service. */
  redact(text: string): string {
    return this.#exchange.redact(text);
  }

  /** @throws ConnectorError when the request has failed for good */
  #pauseAfter({ response, error }: FailedSend, { attempt, waited }: { attempt: number; waited: number }): Pause {
    const { max_attempts, base_seconds, max_wait_seconds } = this.options;
    const limited = response !== null && isLimited(response);
    if (!error.retryable && !limited) throw error;
    const mayAsk = response !== null && (limited || response.status === 503);
    const asked = mayAsk ? requestedWait(response.headers, this.ctx.now()) : null;
    if (asked !== null) {
      if (waited + asked > max_wait_seconds * 1000) throw this.#limited(asked, error.message);
      return { ms: this.#announce(asked), counts: false };
    }
    if (attempt >= max_attempts) throw limited ? this.#limited(DEFAULT_WAIT_MS, error.message) : error;
    return { ms: backoff(attempt, base_seconds), counts: true };
  }

  #limited(ms: number, message: string): ConnectorError {
    return new RateLimitedError(new Date(this.ctx.now().getTime() + ms), message);
  }

  /** Reports a pause that the service asked for, and returns its length. */
  #announce(asked: number): number {
    const ms = Math.max(asked, MIN_WAIT_MS);
    this.ctx.rateLimited(new Date(this.ctx.now().getTime() + ms));
    return ms;
  }

  #noteQuota(headers: Headers): void {
    if (!isExhausted(headers)) return;
    const ms = requestedWait(headers, this.ctx.now());
    if (ms !== null) this.#pausedUntil = performance.now() + ms;
  }

  /** Waits when the last response said that the quota is used up: the next request would be refused. */
  async #awaitQuota(): Promise<void> {
    const ms = this.#pausedUntil - performance.now();
    if (ms <= 0) return;
    this.#pausedUntil = 0;
    if (ms > this.options.max_wait_seconds * 1000) throw this.#limited(ms, 'The quota of the service is used up');
    await pause(this.#announce(ms), this.ctx.signal);
  }

  async #try(request: HttpRequest, accept: Accept): Promise<RequestAttempt<HttpResponse, FailedSend>> {
    const { signer } = this.options;
    await this.#awaitQuota();
    const token = await signer.current();
    let response: HttpResponse;
    try {
      response = await this.#exchange.send(request, token);
    } catch (error) {
      if (error instanceof ConnectorError) return { ok: false, failed: { response: null, error } };
      throw error;
    }
    const where = `${request.method} ${request.url.host}${request.url.pathname}`;
    const succeeded = response.status >= 200 && response.status < 300;
    if (succeeded || accept.statuses?.includes(response.status)) {
      this.#noteQuota(response.headers);
      const described = (succeeded && accept.errorIn?.(response)) || null;
      if (!described) return { ok: true, result: response };
      const message = shortened(described.message, (found) => this.#exchange.redact(found, token));
      const text = `${where} returned an error with status ${response.status}: ${message}`;
      const failure = described.retryable ? RetryableError : ConfigurationError;
      return { ok: false, failed: { response: null, error: new failure('error_in_response', text) } };
    }
    if (request.may_leave && !this.options.origins.has(response.url.origin)) {
      // An address that has expired is no matter of credentials: the next attempt gets a new one.
      const text = `${response.url.host} returned ${response.status} for a download`;
      return { ok: false, failed: { response, error: new RetryableError('download_refused', text) } };
    }
    const error = statusError(response.status, { where, message: this.#exchange.messageOf(response, token) });
    const renew = response.status === 401 ? () => signer.renew(token) : undefined;
    return { ok: false, failed: { response, error, renew } };
  }
}

/** Some services, GitHub among them, return 403 when the quota is used up. */
const isLimited = ({ status, headers }: HttpResponse) =>
  status === 429 || (status === 403 && (isExhausted(headers) || headers.has('retry-after')));
