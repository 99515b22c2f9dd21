import type pg from 'pg';
import type { ConnectorContext, PendingRequest } from '../define.ts';
import { TimeoutError } from '../errors.ts';
import { cancelBackend, connectClient, type LoginOptions, socketOf } from './client.ts';
import { CopyIn } from './copy-in.ts';
import { CopyOut } from './copy-out.ts';
import { connectorError, type FailurePlace } from './failures.ts';
import { ReplicationStream } from './replication-stream.ts';
import type { ServerSettings } from './settings.ts';

export type Row = (string | null)[];
export interface QueryResult {
  rows: Row[];
  /** Rows that the statement touched. */
  count: number;
}

/** `database` overrides the settings' one. */
export type SessionOptions = Partial<LoginOptions> & Pick<LoginOptions, 'phase'>;

type Context = ConnectorContext<ServerSettings>;

/** Same text for the same value on every server, whatever its and the role's defaults are. */
const SETTINGS =
  "set client_encoding = 'UTF8'; set datestyle = 'ISO, YMD'; set timezone = 'UTC'; set intervalstyle = 'iso_8601'; " +
  "set extra_float_digits = 3; set bytea_output = 'hex'; set lc_monetary = 'C'; set xmloption = 'content'; " +
  'set standard_conforming_strings = on; set tcp_keepalives_idle = 30; set tcp_keepalives_interval = 10; ' +
  'set tcp_keepalives_count = 3';

/** Statements that only ask or define end in that time, or the line is dead (a half-open link gives no error). */
const QUICK_MS = 60_000;
/** A server that does not answer a farewell is left without one. */
const FAREWELL_MS = 1_000;

/**
 * One connection to a server. Everything it sends is recorded; every error comes out as a ConnectorError, or as the
 * signal's reason once the context's signal is aborted, which also ends what the server is doing for us.
 */
export class PgSession {
  #open = true;
  #busy = 0;
  #cancelled: Promise<void> | null = null;

  private constructor(
    private readonly ctx: Context,
    private readonly client: pg.Client,
    private readonly place: FailurePlace,
    private readonly url: string,
  ) {}

  static async open(ctx: Context, options: SessionOptions): Promise<PgSession> {
    ctx.signal.throwIfAborted();
    const { host, port } = ctx.config;
    const database = options.database ?? ctx.config.database;
    const place = { server: `${host}:${port}`, phase: options.phase };
    const url = `postgres://${place.server}/${encodeURIComponent(database)}`;
    const pending = ctx.recorder.start({ method: 'CONNECT', url, body: null, body_bytes: 0 });
    const client = await connectClient(ctx, { ...options, database }).catch((error: unknown) => {
      const known = connectorError(error, place) as Error & { code?: string };
      pending.failed(known.code ?? 'error', known.message);
      throw ctx.signal.aborted ? ctx.signal.reason : known;
    });
    pending.done({ status: 200, body_bytes: 0 });
    const session = new PgSession(ctx, client, place, url);
    ctx.signal.addEventListener('abort', session.#abort, { once: true });
    try {
      await session.query(SETTINGS);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /** Runs one statement. `slow`: it may take as long as it likes. */
  async query(text: string, values: (string | null)[] = [], { slow = false } = {}): Promise<QueryResult> {
    return this.#recorded('QUERY', text, async () => {
      const query = this.client.query({ text, values: values.length ? values : undefined, rowMode: 'array' });
      const result = await (slow ? query : this.#inTime(query));
      return { rows: (result.rows ?? []) as Row[], count: result.rowCount ?? 0 };
    });
  }

  /** The columns that a statement gives, with their types' numbers. A text of several statements is refused. */
  async describe(text: string): Promise<{ name: string; type: number; modifier: number }[]> {
    return this.#recorded('DESCRIBE', text, async () => {
      // The extended protocol takes one statement and no more.
      const config = { text, rowMode: 'array', queryMode: 'extended' } as pg.QueryArrayConfig;
      const { fields } = await this.#inTime(this.client.query(config));
      return fields.map(({ name, dataTypeID, dataTypeModifier }) => ({
        name,
        type: dataTypeID,
        modifier: dataTypeModifier,
      }));
    });
  }

  /** The statement's bytes as they come. Leaving the iteration early closes the session. */
  copyOut(text: string, options: { binary: boolean }): CopyOut {
    const pending = this.#start('COPY', text);
    const copy: CopyOut = new CopyOut(text, {
      binary: options.binary,
      settled: (error) => this.#settle(pending, error, () => copy.bytes()),
      abandon: () => this.#abort(),
    });
    this.client.query(copy as unknown as pg.Submittable);
    return copy;
  }

  copyIn(text: string): CopyIn {
    const pending = this.#start('COPY', text);
    const copy: CopyIn = new CopyIn(text, (error) => this.#settle(pending, error, () => copy.bytes()));
    this.client.query(copy as unknown as pg.Submittable);
    return copy;
  }

  /** START_REPLICATION, on a session that was opened for it. Until its `end` the session takes nothing else. */
  replicate<Message>(options: { text: string; confirmed: string; decode(message: Buffer): Message }) {
    const pending = this.#start('REPLICATE', options.text);
    const stream: ReplicationStream<Message> = new ReplicationStream({
      ...options,
      settled: (error) => this.#settle(pending, error, () => stream.bytes()),
    });
    this.client.query(stream as unknown as pg.Submittable);
    return stream;
  }

  /** What the driver threw, as the engine understands it. */
  translate(error: unknown): unknown {
    if (this.ctx.signal.aborted) return this.ctx.signal.reason;
    return connectorError(error, this.place);
  }

  /** Lets go. What the server is still doing for this session is ended, its open transaction is rolled back. */
  async close(): Promise<void> {
    this.ctx.signal.removeEventListener('abort', this.#abort);
    if (this.#busy > 0) this.#abort();
    if (this.#cancelled) return this.#cancelled;
    if (!this.#open) return;
    this.#open = false;
    const ended = this.client.end().catch(() => {});
    const late = setTimeout(() => socketOf(this.client).destroy(), FAREWELL_MS);
    await ended;
    clearTimeout(late);
  }

  readonly #abort = () => {
    if (!this.#open) return;
    this.#open = false;
    const busy = this.#busy > 0;
    socketOf(this.client).destroy();
    this.#cancelled = busy ? cancelBackend(this.client, this.ctx) : Promise.resolve();
  };

  #start(method: string, body: string | null): PendingRequest {
    this.ctx.signal.throwIfAborted();
    this.#busy++;
    return this.ctx.recorder.start({
      method,
      url: this.url,
      body,
      body_bytes: body === null ? 0 : Buffer.byteLength(body),
    });
  }

  #settle(pending: PendingRequest, error: unknown, bytes: () => number) {
    this.#busy--;
    if (!error) return pending.done({ status: 200, body_bytes: bytes() });
    const known = connectorError(error, this.place) as Error & { code?: string };
    pending.failed(known.code ?? 'error', known.message);
  }

  async #recorded<Result>(method: string, body: string | null, work: () => Promise<Result>): Promise<Result> {
    const pending = this.#start(method, body);
    try {
      const result = await work();
      this.#settle(pending, null, () => 0);
      return result;
    } catch (error) {
      this.#settle(pending, error, () => 0);
      throw this.translate(error);
    }
  }

  async #inTime<Result>(work: Promise<Result>): Promise<Result> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new TimeoutError('query_timeout', `${this.place.server} did not answer a query in time`));
        this.#abort();
      }, QUICK_MS);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Runs `work` on a session of its own. */
export async function withSession<Result>(
  ctx: Context,
  options: SessionOptions,
  work: (session: PgSession) => Promise<Result>,
): Promise<Result> {
  const session = await PgSession.open(ctx, options);
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}
