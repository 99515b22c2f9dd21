import type { ConnectorContext } from '../../contract/connector.ts';
import { ConnectorError, RateLimitedError } from '../../contract/errors.ts';
import { type Answer, type Call, Exchange, type ExchangeOptions } from './send.ts';
import { statusError } from './failures.ts';
import { pause } from './rate-limiter.ts';
import { askedWait, backoff, isExhausted } from './retry-after.ts';

export interface ClientOptions extends ExchangeOptions {
  max_attempts: number;
  base_seconds: number;
  /** What all pauses that the service asks for may take together, for one call. */
  max_wait_seconds: number;
}

type Context = Pick<ConnectorContext<unknown>, 'fetch' | 'signal' | 'now' | 'rateLimited'>;
const DEFAULT_WAIT_MS = 60_000;

/** Sends requests: signed, paced, tried again when that helps, its errors in the engine's terms. */
export class HttpClient {
  readonly #exchange: Exchange;
  #pausedUntil = 0;

  constructor(
    private readonly ctx: Context,
    private readonly options: ClientOptions,
  ) {
    this.#exchange = new Exchange(ctx, options);
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
    let answer: Answer;
    try {
      answer = await this.#exchange.send(call, token);
    } catch (error) {
      if (error instanceof ConnectorError) return { answer: null, error };
      throw error;
    }
    if ((answer.status >= 200 && answer.status < 300) || accept.includes(answer.status)) return { answer, error: null };
    const where = `${call.method} ${call.url.host}${call.url.pathname}`;
    const message = this.#exchange.messageOf(answer, token);
    return { answer, error: statusError(answer.status, { where, message }) };
  }
}

type Tried = { answer: Answer; error: null } | { answer: Answer | null; error: ConnectorError };

/** GitHub, for one, says 403 when its quota is used up. */
const isLimited = ({ status, headers }: Answer) =>
  status === 429 || (status === 403 && (isExhausted(headers) || headers.has('retry-after')));
