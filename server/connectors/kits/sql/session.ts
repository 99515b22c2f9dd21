import { type FailurePlace, placeOf } from './failures.ts';
import type {
  ConnectorContext,
  LockHolder,
  PendingRequest,
  SessionState,
  WatchedSession,
} from '../../contract/connector.ts';
import type { Row } from './dialect.ts';
import type { KeptClient } from '../../../platform/net/kept-sessions.ts';
import { TimeoutError } from '../../contract/errors.ts';

/** A short statement that takes longer is taken for a dead connection: a half-open one raises no error. */
const QUERY_TIMEOUT_MS = 60_000;

/** A server that does not answer for so long counts as silent. */
const LOOK_MS = 5_000;

type Context = ConnectorContext<{ host: string; port: number }>;

/** A statement that receives or sends rows. */
export interface RowFlow {
  bytes(): number;
  /** The server has to send or accept more. */
  waits(): boolean;
}

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
export abstract class DatabaseSession<Ctx extends Context> implements WatchedSession {
  readonly server: string;
  #open = true;
  #busy = 0;
  #steps = 0;
  #flow: RowFlow | null = null;
  #ended: Promise<void> | null = null;
  #failed = false;
  readonly #unwatch: () => void;

  protected constructor(
    protected readonly ctx: Ctx,
    private readonly facts: SessionFacts,
    /** What the connection was opened with. Null: it is of no use for another session. */
    private readonly settings: string | null,
  ) {
    this.server = facts.place.server;
    ctx.signal.addEventListener('abort', this.abort, { once: true });
    this.#unwatch = ctx.watch?.(this) ?? (() => {});
  }

  /** Looks at this session from a session of its own, opened with `ctx`. */
  protected abstract inspect(ctx: Ctx, flow: RowFlow | null): Promise<SessionState>;

  pulse(): number {
    return this.#steps + (this.#flow?.bytes() ?? 0);
  }

  waits(): boolean {
    return this.#open && this.#busy > 0 && (this.#flow?.waits() ?? true);
  }

  look(): Promise<SessionState> {
    const signal = AbortSignal.any([this.ctx.signal, AbortSignal.timeout(LOOK_MS)]);
    return this.inspect({ ...this.ctx, signal, watch: undefined }, this.#flow);
  }

  /** Rows pass until the statement ends. */
  protected flows<Flow extends RowFlow>(flow: Flow): Flow {
    this.#flow = flow;
    return flow;
  }

  /** Closes the socket at once. `busy`: also ends the statement on the server. Must not fail. */
  protected abstract drop(busy: boolean): Promise<void>;

  /** Closes an idle connection by the protocol. Must not fail. */
  protected abstract leave(): Promise<void>;

  /** Brings an idle connection into the state of a new one. Null: it cannot be kept. Must not fail. */
  protected abstract reset(): Promise<KeptClient | null>;

  /** The idle connection, if this session has not changed its state. */
  protected unchanged(): KeptClient | null {
    return null;
  }

  /** Converts what the driver threw into the error to throw. */
  translate(error: unknown): unknown {
    if (this.ctx.signal.aborted) return this.ctx.signal.reason;
    return this.facts.failure(error, this.facts.place);
  }

  /** Ends a running statement and rolls back an open transaction. */
  async close(): Promise<void> {
    this.#unwatch();
    this.ctx.signal.removeEventListener('abort', this.abort);
    if (this.#busy > 0) this.abort();
    if (this.#ended) return this.#ended;
    if (!this.#open) return;
    this.#open = false;
    if (!(await this.#keep())) await this.leave();
  }

  /** Leaves an idle connection as it is to another session. False: this session has to close it. */
  protected detach(): boolean {
    if (!this.#open || this.#busy > 0 || this.#failed) return false;
    this.#unwatch();
    this.ctx.signal.removeEventListener('abort', this.abort);
    this.#open = false;
    return true;
  }

  /** After an error, the state of the connection is not known. */
  async #keep(): Promise<boolean> {
    const { sessions } = this.ctx;
    if (!sessions || this.settings === null || this.#failed) return false;
    const unchanged = this.unchanged();
    if (unchanged) {
      sessions.pass(this.settings, unchanged, () => this.reset());
      return true;
    }
    const client = await this.reset();
    if (client) sessions.keep(this.settings, client);
    return client !== null;
  }

  protected readonly abort = () => {
    if (!this.#open) return;
    this.#unwatch();
    this.#open = false;
    this.#ended = this.drop(this.#busy > 0);
  };

  protected start(method: string, body: string | null, bytes?: number): PendingRequest {
    this.ctx.signal.throwIfAborted();
    this.#busy++;
    this.#steps++;
    const body_bytes = bytes ?? (body === null ? 0 : Buffer.byteLength(body));
    return this.ctx.recorder.start({ method, url: this.facts.url, body, body_bytes });
  }

  protected finish(pending: PendingRequest, error: unknown, bytes: number): void {
    this.#busy--;
    this.#steps += 1 + (this.#flow?.bytes() ?? 0);
    this.#flow = null;
    if (!error) return pending.done({ status: 200, body_bytes: bytes });
    this.#failed = true;
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
    // What watches the session can tell a wait for a lock from silence.
    if (this.ctx.watch) return work;
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

/** A row of what a server shows of a lock's holder: session, user, application, state, since, kind of statement. */
export const lockHolder = ([session, user, application, state, since, statement]: Row): LockHolder => ({
  session: session ?? '',
  user: user || null,
  application: application || null,
  state: state ?? null,
  since: since ?? null,
  statement: statement ?? null,
});
