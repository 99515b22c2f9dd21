/** A login that serves one file or listing at a time. */
export interface PooledSession {
  readonly open: boolean;
  close(): void;
}

/** Between two files of a run. An attempt that waits longer logs in again. */
const IDLE_MS = 500;

/** Sessions of one kind, by context. A read of many files logs in once; what is idle closes by itself. */
export class SessionPool<Context extends { signal: AbortSignal }, Session extends PooledSession> {
  readonly #idle = new WeakMap<Context, Session[]>();

  constructor(private readonly start: (ctx: Context) => Promise<Session>) {}

  /** A session for the caller alone, who returns it by `release`. */
  async acquire(ctx: Context): Promise<Session> {
    ctx.signal.throwIfAborted();
    const idle = this.#idle.get(ctx) ?? [];
    for (let session = idle.pop(); session; session = idle.pop()) if (session.open) return session;
    return this.start(ctx);
  }

  /** @param healthy whether nothing of the last work can still arrive */
  release(ctx: Context, session: Session, healthy: boolean): void {
    if (!healthy || !session.open || ctx.signal.aborted) return session.close();
    const idle = this.#idle.get(ctx) ?? [];
    this.#idle.set(ctx, [...idle, session]);
    const close = () => {
      const now = this.#idle.get(ctx) ?? [];
      if (!now.includes(session)) return;
      this.#idle.set(
        ctx,
        now.filter((one) => one !== session),
      );
      session.close();
    };
    setTimeout(close, IDLE_MS).unref();
    ctx.signal.addEventListener('abort', close, { once: true });
  }

  async use<Result>(ctx: Context, work: (session: Session) => Promise<Result>): Promise<Result> {
    const session = await this.acquire(ctx);
    let healthy = false;
    try {
      const result = await work(session);
      healthy = true;
      return result;
    } finally {
      this.release(ctx, session, healthy);
    }
  }
}
