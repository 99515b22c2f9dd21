import type { Connection, QueryError, ResultSetHeader } from 'mysql2';
import { Readable } from 'node:stream';
import type { ConnectorContext, PendingRequest } from '../define.ts';
import { TimeoutError } from '../errors.ts';
import { connectClient, driverOf, farewell, killConnection } from './client.ts';
import { connectorError, type FailurePlace } from './failures.ts';
import { RowStream } from './row-stream.ts';
import type { RowText } from './row-text.ts';
import { sessionSettings, type ServerVersion, versionOf } from './server-version.ts';
import type { ServerSettings } from './settings.ts';

export type Row = (string | null)[];
export interface QueryResult {
  rows: Row[];
  /** Rows that the statement changed. */
  count: number;
  /** `Records: 3  Duplicates: 1  Warnings: 0` after statements that tell so. */
  info: string;
  warnings: number;
}

export interface SessionOptions {
  phase: FailurePlace['phase'];
  /** Overrides the settings' one; null: none. */
  database?: string | null;
}

type Context = ConnectorContext<ServerSettings>;

/** Statements that only ask or define end in that time, or the line is dead (a half-open link gives no error). */
const QUICK_MS = 60_000;
/** What of a statement that carries rows goes into the network log. */
const SHOWN_CHARACTERS = 2_000;

/**
 * One connection to a server. Everything it sends is recorded; every error comes out as a ConnectorError, or as the
 * signal's reason once the context's signal is aborted, which also ends what the server is doing for us.
 */
export class MysqlSession {
  #open = true;
  #busy = 0;
  #killed: Promise<void> | null = null;
  #id: string | null = null;
  #version: ServerVersion | null = null;

  private constructor(
    private readonly ctx: Context,
    private readonly client: Connection,
    private readonly place: FailurePlace,
    private readonly url: string,
  ) {}

  static async open(ctx: Context, options: SessionOptions): Promise<MysqlSession> {
    ctx.signal.throwIfAborted();
    const { host, port } = ctx.config;
    const database = options.database === undefined ? ctx.config.database : options.database;
    const place = { server: `${host}:${port}`, phase: options.phase };
    const url = `mysql://${place.server}/${encodeURIComponent(database ?? '')}`;
    const pending = ctx.recorder.start({ method: 'CONNECT', url, body: null, body_bytes: 0 });
    const client = await connectClient(ctx, { database, phase: options.phase }).catch((error: unknown) => {
      const known = connectorError(error, place) as Error & { code?: string };
      pending.failed(known.code ?? 'error', known.message);
      throw ctx.signal.aborted ? ctx.signal.reason : known;
    });
    pending.done({ status: 200, body_bytes: 0 });
    const session = new MysqlSession(ctx, client, place, url);
    ctx.signal.addEventListener('abort', session.#abort, { once: true });
    try {
      const { rows } = await session.query('select version(), connection_id()');
      const [[version, id] = []] = rows;
      session.#version = versionOf(version ?? '');
      session.#id = id ?? null;
      for (const statement of sessionSettings(session.version, ctx.config)) await session.query(statement);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  get version(): ServerVersion {
    if (!this.#version) throw new Error('the session is not open yet');
    return this.#version;
  }

  /** Runs one statement. `slow`: it may take as long as it likes. */
  async query(text: string, { slow = false } = {}): Promise<QueryResult> {
    return this.#recorded('QUERY', text, () => (slow ? this.#run(text) : this.#inTime(this.#run(text))));
  }

  /** Runs one that carries rows: `data` is what LOAD DATA LOCAL asks for. */
  async load(text: string, data: Buffer | null): Promise<QueryResult> {
    const work = () => this.#run(text, data ?? undefined);
    return this.#recorded('LOAD', text.slice(0, SHOWN_CHARACTERS), work, (data?.length ?? 0) + text.length);
  }

  /** A SELECT whose rows come as lines of COPY text. Leaving the iteration early closes the session. */
  stream(text: string, rows: RowText): RowStream {
    const pending = this.#start('QUERY', text);
    const stream: RowStream = new RowStream(text, rows, {
      settled: (error) => this.#settle(pending, error, stream.bytes()),
      abandon: () => this.#abort(),
    });
    driverOf(this.client).addCommand(stream);
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
    if (this.#killed) return this.#killed;
    if (!this.#open) return;
    this.#open = false;
    await farewell(this.client);
  }

  readonly #abort = () => {
    if (!this.#open) return;
    this.#open = false;
    const busy = this.#busy > 0;
    driverOf(this.client).stream.destroy();
    this.#killed = busy && this.#id !== null ? killConnection(this.#id, this.ctx) : Promise.resolve();
  };

  #run(sql: string, data?: Buffer): Promise<QueryResult> {
    return new Promise((resolve, reject) => {
      const done = (error: QueryError | null, result: unknown) => {
        if (error) return reject(error);
        if (Array.isArray(result)) return resolve({ rows: result as Row[], count: 0, info: '', warnings: 0 });
        const header = result as ResultSetHeader;
        resolve({ rows: [], count: header.affectedRows, info: header.info, warnings: header.warningStatus });
      };
      this.client.query({ sql, ...(data && { infileStreamFactory: () => Readable.from(pieces(data)) }) }, done);
    });
  }

  #start(method: string, body: string | null, bytes?: number): PendingRequest {
    this.ctx.signal.throwIfAborted();
    this.#busy++;
    const body_bytes = bytes ?? (body === null ? 0 : Buffer.byteLength(body));
    return this.ctx.recorder.start({ method, url: this.url, body, body_bytes });
  }

  #settle(pending: PendingRequest, error: unknown, bytes: number) {
    this.#busy--;
    if (!error) return pending.done({ status: 200, body_bytes: bytes });
    const known = connectorError(error, this.place) as Error & { code?: string };
    pending.failed(known.code ?? 'error', known.message);
  }

  async #recorded<Result>(
    method: string,
    body: string | null,
    work: () => Promise<Result>,
    bytes?: number,
  ): Promise<Result> {
    const pending = this.#start(method, body, bytes);
    try {
      const result = await work();
      this.#settle(pending, null, 0);
      return result;
    } catch (error) {
      this.#settle(pending, error, 0);
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

/** The driver makes one packet of each piece, which has room for 16 MB. */
function* pieces(data: Buffer): Generator<Buffer> {
  for (let at = 0; at < data.length; at += 1024 * 1024) yield data.subarray(at, at + 1024 * 1024);
}

/** Runs `work` on a session of its own. */
export async function withSession<Result>(
  ctx: Context,
  options: SessionOptions,
  work: (session: MysqlSession) => Promise<Result>,
): Promise<Result> {
  const session = await MysqlSession.open(ctx, options);
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}
