import type { ConnectorContext } from '../../contract/connector.ts';
import { ConnectorError, RateLimitedError, RetryableError } from '../../contract/errors.ts';
import { parseExactly } from '../../cells/json-line.ts';
import type { Signer } from '../../kits/rest/authentication.ts';
import { type Answer, type Call, Exchange, type ExchangeOptions } from '../../kits/rest/send.ts';
import { pause } from '../../kits/rest/rate-limiter.ts';
import { backoff } from '../../kits/rest/retry-after.ts';
import type { ErrorHandler } from '../components/request-components.ts';
import {
  type Heard,
  judge,
  type Judging,
  retriesOf,
  strategiesOf,
  type Verdict,
  verdictError,
  waitBy,
} from './error-handling.ts';

/** What all pauses of one request may take together; more ends the attempt, and a later one goes on. */
const MOST_WAIT_MS = 600_000;
/** Somebody waits for the answer of a check. */
const HURRY = { retries: 1, wait: 5000 };
/** Shorter pauses are not worth telling. */
const TOLD_MS = 1000;

type Context = Pick<ConnectorContext<unknown>, 'fetch' | 'signal' | 'now' | 'rateLimited'>;

export interface Request {
  call: Call;
  handler: ErrorHandler | null | undefined;
  judging: Judging;
}

/** Sends requests by the rules of a manifest: its filters say what an answer means, its strategies how long to wait. */
export class ManifestClient {
  readonly #exchange: Exchange;
  readonly #signer: Signer;

  constructor(
    private readonly ctx: Context,
    private readonly options: ExchangeOptions & { hurry: boolean },
  ) {
    this.#exchange = new Exchange(ctx, options);
    this.#signer = options.signer;
  }

  /** Null: the manifest says to go on as if there were nothing. @throws ConnectorError, or the signal's reason */
  async send({ call, handler, judging }: Request): Promise<Heard | null> {
    const retries = this.options.hurry ? HURRY.retries : retriesOf(handler, judging);
    const most = this.options.hurry ? HURRY.wait : MOST_WAIT_MS;
    let [waited, renewed] = [0, false];
    for (let attempt = 1; ; ) {
      const token = await this.#signer.current();
      const { heard, verdict, error } = await this.#try({ call, handler, judging }, token);
      if (heard && verdict.action === 'SUCCESS') return heard;
      if (verdict.action === 'IGNORE') return null;
      const mayRenew =
        verdict.action === 'REFRESH_TOKEN_THEN_RETRY' || (heard?.answer.status === 401 && verdict.action === 'FAIL');
      if (mayRenew && !renewed && this.#signer.renew(token)) {
        renewed = true;
        continue;
      }
      if (verdict.action === 'FAIL') throw error;
      const at = { ...judging, attempt, now: this.ctx.now() };
      const wait = waitBy(strategiesOf(handler), heard, at) ?? backoff(attempt, 0.5);
      waited += wait;
      const limited = verdict.action === 'RATE_LIMITED';
      if (waited > most && limited)
        throw new RateLimitedError(new Date(at.now.getTime() + Math.min(wait, 86_400_000)), error.message);
      if (waited > most || (!limited && attempt > retries)) throw asRetryable(error);
      if (wait >= TOLD_MS) this.ctx.rateLimited(new Date(at.now.getTime() + wait));
      await pause(Math.max(wait, 1), this.ctx.signal);
      attempt += 1;
    }
  }

  async #try({ call, handler, judging }: Request, token: string | null): Promise<Tried> {
    let answer: Answer;
    try {
      answer = await this.#exchange.send(call, token);
    } catch (error) {
      if (!(error instanceof ConnectorError)) throw error;
      const action = error.retryable ? ('RETRY' as const) : ('FAIL' as const);
      return { heard: null, verdict: { action, message: null, failure: undefined }, error };
    }
    const heard = hear(answer);
    const verdict = judge(handler, heard, judging);
    const where = `${call.method} ${call.url.host}${call.url.pathname}`;
    const told = { ...verdict, message: verdict.message && this.#exchange.redact(verdict.message) };
    return {
      heard,
      verdict,
      error: verdictError(told, answer.status, { where, message: this.#exchange.messageOf(answer, token) }),
    };
  }
}

interface Tried {
  heard: Heard | null;
  verdict: Verdict;
  error: ConnectorError;
}

/** The manifest wants another attempt, so the engine makes one too. */
const asRetryable = (error: ConnectorError) =>
  error.retryable ? error : new RetryableError(error.code, error.message, { cause: error });

function hear(answer: Answer): Heard {
  let known: { json: unknown } | null = null;
  const json = () => {
    if (known) return known.json;
    try {
      known = { json: parseExactly(answer.text) };
    } catch {
      known = { json: {} };
    }
    return known.json;
  };
  return { answer, json };
}
