import type { ConnectorContext } from '../../contract/connector.ts';
import { ConnectorError, RateLimitedError, RetryableError } from '../../contract/errors.ts';
import { parseExactly } from '../../cells/json-line.ts';
import {
  BACKGROUND,
  type Failure,
  INTERACTIVE,
  type Pause,
  type RequestAttempt,
  withRetries,
} from '../../kits/rest/retry.ts';
import { backoff } from '../../kits/rest/retry-after.ts';
import { Exchange, type ExchangeOptions, type HttpResponse } from '../../kits/rest/send.ts';
import type { ErrorHandler } from '../components/request-components.ts';
import type { Interpolation } from '../interpolation/template.ts';
import type { PythonSession } from '../python/session.ts';
import {
  type ErrorResolution,
  interpretResponse,
  resolutionError,
  retriesOf,
  type SeenResponse,
  strategiesOf,
  waitBy,
} from './error-handling.ts';
import type { HttpRequest } from '../../kits/rest/request.ts';

/** Shorter pauses are not reported. */
const MIN_REPORTED_WAIT_MS = 1000;
const DAY_MS = 86_400_000;

type Context = Pick<ConnectorContext<unknown>, 'fetch' | 'signal' | 'now' | 'rateLimited'>;

export interface ManifestRequest {
  request: HttpRequest;
  handler: ErrorHandler | null | undefined;
  interpolation: Interpolation;
}

interface FailedSend extends Failure {
  /** Null: there was no response. */
  seen: SeenResponse | null;
  action: ErrorResolution['action'];
}

/** Sends requests by the rules of a manifest: response filters interpret responses, backoff strategies set the pauses. */
export class ManifestClient {
  readonly #exchange: Exchange;

  constructor(
    private readonly ctx: Context,
    private readonly options: ExchangeOptions & { interactive: boolean; python: PythonSession | null },
  ) {
    this.#exchange = new Exchange(ctx, options);
  }

  /** A text without the secrets of the service. */
  redact(text: string): string {
    return this.#exchange.redact(text);
  }

  /** @throws ConnectorError, or the signal's reason */
  async send(sent: ManifestRequest): Promise<SeenResponse> {
    let waited = 0;
    return await withRetries(
      this.ctx.signal,
      () => this.#try(sent),
      async (failed, attempt) => {
        if (failed.action === 'FAIL') throw failed.error;
        const wait = await this.#waitAfter(failed, sent, attempt);
        waited += wait;
        return this.#pauseFor({ failed, sent, attempt, wait, waited });
      },
    );
  }

  async #waitAfter(
    { seen }: FailedSend,
    { handler, interpolation }: ManifestRequest,
    attempt: number,
  ): Promise<number> {
    const at = { ...interpolation, python: this.options.python, attempt, now: this.ctx.now() };
    return (await waitBy(strategiesOf(handler), seen, at)) ?? backoff(attempt, 0.5);
  }

  /** @throws ConnectorError when the request has failed for good */
  #pauseFor({ failed, sent, attempt, wait, waited }: Pausing): Pause {
    const { interactive } = this.options;
    const patience = interactive ? INTERACTIVE : BACKGROUND;
    const retries = interactive ? INTERACTIVE.max_attempts - 1 : retriesOf(sent.handler, sent.interpolation);
    const isTooLong = waited > patience.max_wait_seconds * 1000;
    const limited = failed.action === 'RATE_LIMITED';
    const now = this.ctx.now().getTime();
    if (isTooLong && limited) throw new RateLimitedError(new Date(now + Math.min(wait, DAY_MS)), failed.error.message);
    if (isTooLong || (!limited && attempt > retries)) throw asRetryable(failed.error);
    if (wait >= MIN_REPORTED_WAIT_MS) this.ctx.rateLimited(new Date(now + wait));
    return { ms: Math.max(wait, 1), counts: true };
  }

  async #try({ request, handler, interpolation }: ManifestRequest): Promise<RequestAttempt<SeenResponse, FailedSend>> {
    const { signer } = this.options;
    const token = await signer.current();
    const renew = () => signer.renew(token);
    let response: HttpResponse;
    try {
      response = await this.#exchange.send(request, token);
    } catch (error) {
      if (!(error instanceof ConnectorError)) throw error;
      return { ok: false, failed: { seen: null, action: error.retryable ? 'RETRY' : 'FAIL', error } };
    }
    const seen = seenResponse(response);
    const { python } = this.options;
    const resolution = await interpretResponse(handler, seen, { ...interpolation, python });
    const { action } = resolution;
    if (action === 'SUCCESS') return { ok: true, result: seen };
    if (action === 'RESET_PAGINATION') return { ok: true, result: { ...seen, isIgnored: true, resets: true } };
    if (action === 'IGNORE') return { ok: true, result: { ...seen, isIgnored: true } };
    const where = `${request.method} ${request.url.host}${request.url.pathname}`;
    const shown = { ...resolution, message: resolution.message && this.#exchange.redact(resolution.message) };
    const message = this.#exchange.messageOf(response, token);
    const error = resolutionError(shown, response.status, { where, message });
    const mayRenew = action === 'REFRESH_TOKEN_THEN_RETRY' || (response.status === 401 && action === 'FAIL');
    return { ok: false, failed: { seen, action, error, ...(mayRenew && { renew }) } };
  }
}

interface Pausing {
  failed: FailedSend;
  sent: ManifestRequest;
  attempt: number;
  /** The next pause, and all of them together, in ms. */
  wait: number;
  waited: number;
}

/** The manifest asks for a retry, so the engine retries too. */
const asRetryable = (error: ConnectorError) =>
  error.retryable ? error : new RetryableError(error.code, error.message, { cause: error });

export function seenResponse(response: HttpResponse): SeenResponse {
  let parsed: { json: unknown } | null = null;
  const json = () => {
    if (parsed) return parsed.json;
    try {
      parsed = { json: parseExactly(response.text) };
    } catch {
      parsed = { json: {} };
    }
    return parsed.json;
  };
  return { response, json, isIgnored: false };
}
