import { type FailurePlace, placeOf } from './failures.ts';
import type { ConnectorContext, PendingRequest } from '../../contract/connector.ts';
import { TimeoutError } from '../../contract/errors.ts';

/** A short statement that takes longer is taken for a dead connection: a half-open one raises no error. */
const QUERY_TIMEOUT_MS = 60_000;

type Context = ConnectorContext<{ host: string; port: number }>;

/** Constant for the lifetime of a session. */
export interface SessionFacts {
  place: FailurePlace;
  /** For the network log. */
  url: string;
  /** Converts what the driver threw into a ConnectorError. */
  failure(error: unknown, place: FailurePlace): Error;
}

export function sessionFacts(
  { config }: Context,
  about: { scheme: string; database: string; phase: FailurePlace['phase']; failure: SessionFacts['failure'] },
): SessionFacts {
  const place = placeOf(config, about.phase);
  return {
    place,
    url: `${about.scheme}://${place.server}/${encodeURIComponent(about.database)}`,
    failure: about.failure,
  };
}

/** Runs and records `connect`. @throws ConnectorError, the signal's reason */
export async function recordedConnect<Client>(
  ctx: Context,
  { place, url, failure }: SessionFacts,
  connect: () => Promise<Client>,
): Promise<Client> {
  ctx.signal.throwIfAborted();
  const pending = ctx.recorder.start({ method: 'CONNECT', url, body: null, body_bytes: 0 });
  try {
    const client = await connect();
    pending.done({ status: 200, body_bytes: 0 });
    return client;
  } catch (error) {
    const known = failure(error, place);
    pending.failed(codeOf(known), known.message);
    throw ctx.signal.aborted ? ctx.signal.reason : known;
  }
}

const codeOf = (error: Error & { code?: string }) => error.code ?? 'error';

/**
 * A connection to a server. Records every request. Throws ConnectorErrors, or the signal's reason once the context's
 * signal is aborted. An abort also ends the statement on the server.
 */
export abstract class DatabaseSession<Ctx extends Context> {
  #open = true;
  #busy = 0;
  #ended: Promise<void> | null = null;

  protected constructor(
    protected readonly ctx: Ctx,
    private readonly facts: SessionFacts,
  ) {
    ctx.signal.addEventListener('abort', this.abort, { once: true });
  }

  /** Closes the socket at once. `busy`: also ends the statement on the server. Must not fail. */
  protected abstract drop(busy: boolean): Promise<void>;

  /** Closes an idle connection by the protocol. Must not fail. */
  protected abstract leave(): Promise<void>;

  /** Converts what the driver threw into the error to throw. */
  translate(error: unknown): unknown {
    if (this.ctx.signal.aborted) return this.ctx.signal.reason;
    return this.facts.failure(error, this.facts.place);
  }

  /** Ends a running statement and rolls back an open transaction. */
  async close(): Promise<void> {
    this.ctx.signal.removeEventListener('abort', this.abort);
    if (this.#busy > 0) this.abort();
    if (this.#ended) return this.#ended;
    if (!this.#open) return;
    this.#open = false;
    await this.leave();
  }

  protected readonly abort = () => {
    if (!this.#open) return;
    this.#open = false;
    this.#ended = this.drop(this.#busy > 0);
  };

  protected start(method: string, body: string | null, bytes?: number): PendingRequest {
    this.ctx.signal.throwIfAborted();
    this.#busy++;
    const body_bytes = bytes ?? (body === null ? 0 : Buffer.byteLength(body));
    return this.ctx.recorder.start({ method, url: this.facts.url, body, body_bytes });
  }

  protected finish(pending: PendingRequest, error: unknown, bytes: number): void {
    this.#busy--;
    if (!error) return pending.done({ status: 200, body_bytes: bytes });
    const known = this.facts.failure(error, this.facts.place);
    pending.failed(codeOf(known), known.message);
  }

  protected async recorded<Result>(pending: PendingRequest, work: () => Promise<Result>): Promise<Result> {
    try {
      const result = await work();
      this.finish(pending, null, 0);
      return result;
    } catch (error) {
      this.finish(pending, error, 0);
      throw this.translate(error);
    }
  }

  protected async inTime<Result>(work: Promise<Result>): Promise<Result> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new TimeoutError('query_timeout', `${this.facts.place.server} did not answer a query in time`));
        this.abort();
      }, QUERY_TIMEOUT_MS);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Runs `work` on the session, then closes it. */
export async function onSession<Session extends { close(): Promise<void> }, Result>(
  opening: Promise<Session>,
  work: (session: Session) => Promise<Result>,
): Promise<Result> {
  const session = await opening;
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}
