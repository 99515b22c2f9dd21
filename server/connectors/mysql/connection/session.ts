import type { Connection, QueryError, ResultSetHeader } from 'mysql2';
import type { FailurePlace } from '../../kits/sql/failures.ts';
import {
  DatabaseSession,
  onSession,
  recordedConnect,
  type SessionFacts,
  sessionFacts,
} from '../../kits/sql/session.ts';
import type { ConnectorContext, SessionState } from '../../contract/connector.ts';
import type { KeptClient } from '../../../platform/net/kept-sessions.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { BinlogStream } from './binlog-stream.ts';
import { closeClient, connectClient, driverOf, killConnection } from './client.ts';
import { connectorError } from './failures.ts';
import { inspectSession } from './inspect.ts';
import { LoadData, type LoadResult } from './load-data.ts';
import type { ResultColumn } from '../read/result-types.ts';
import { RowStream } from './row-stream.ts';
import type { RowText } from './row-text.ts';
import { type ServerVersion, sessionSettings, versionOf } from './server-version.ts';
import type { ServerSettings } from './settings.ts';
import type { QueryResult, Row } from './result.ts';

export interface SessionOptions {
  phase: FailurePlace['phase'];
  /** Overrides the configured database; null: no database. */
  database?: string | null;
}

type Context = ConnectorContext<ServerSettings>;

/** Statements that carry rows are truncated to this length in the network log. */
const MAX_LOGGED_LENGTH = 2_000;

/** A logged-in connection between two sessions. */
export interface OpenConnection {
  client: Connection;
  id: string | null;
  version: ServerVersion | null;
}

interface KeptMysqlClient extends KeptClient, OpenConnection {}

/** For the server to bring a session into the state of a new one. */
const RESET_TIMEOUT_MS = 1_000;

/** A connection to a server, with the same session settings everywhere. */
export class MysqlSession extends DatabaseSession<Context> {
  #id: string | null;
  #version: ServerVersion | null;
  private readonly client: Connection;

  private constructor(
    ctx: Context,
    facts: SessionFacts,
    { client, id, version, settings }: OpenConnection & { settings: string | null },
  ) {
    super(ctx, facts, settings);
    this.client = client;
    this.#id = id;
    this.#version = version;
  }

  static async open(ctx: Context, { phase, ...options }: SessionOptions): Promise<MysqlSession> {
    const database = options.database === undefined ? ctx.config.database : options.database;
    const facts = factsOf(ctx, { phase, database });
    const settings = JSON.stringify(['mysql', database, ctx.config]);
    const kept = await ctx.sessions?.take<KeptMysqlClient>(settings, ctx.config);
    if (kept) return new MysqlSession(ctx, facts, { ...kept, settings });
    const client = await recordedConnect(ctx, facts, () => connectClient(ctx, { database, phase }));
    const session = new MysqlSession(ctx, facts, { client, id: null, version: null, settings });
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

  /** A session that goes on in the transaction of another one, which has left it. */
  static of(ctx: Context, connection: OpenConnection): MysqlSession {
    const facts = factsOf(ctx, { phase: 'run', database: ctx.config.database });
    return new MysqlSession(ctx, facts, { ...connection, settings: null });
  }

  /** Ends this session, and leaves its connection and transaction to another one. Null: they have ended or failed. */
  async handOver(): Promise<OpenConnection | null> {
    if (this.detach()) return { client: this.client, id: this.#id, version: this.#version };
    await this.close();
    return null;
  }

  get version(): ServerVersion {
    if (!this.#version) throw new Error('the session is not open yet');
    return this.#version;
  }

  /** Runs one statement. `slow`: without a timeout. */
  async query(text: string, { slow = false } = {}): Promise<QueryResult> {
    return this.recorded(this.start('QUERY', text), () => (slow ? this.#run(text) : this.inTime(this.#run(text))));
  }

  /** The columns of a SELECT, without running it. @throws ConfigurationError if it contains placeholders. */
  async describe(text: string): Promise<ResultColumn[]> {
    return this.recorded(this.start('PREPARE', text), () => this.inTime(this.#prepare(text)));
  }

  /** Runs a statement that carries rows. `lines`: the content for LOAD DATA LOCAL. */
  async load(text: string, lines: Buffer | null): Promise<LoadResult> {
    const bytes = (lines?.length ?? 0) + text.length;
    const pending = this.start('LOAD', text.slice(0, MAX_LOGGED_LENGTH), bytes);
    return this.recorded(pending, () => (lines ? this.#loadData(text, lines) : this.#run(text)));
  }

  /** A SELECT whose rows are yielded as COPY text. Leaving the iteration early closes the session. */
  stream(text: string, rows: RowText): RowStream {
    const pending = this.start('QUERY', text);
    const stream: RowStream = this.flows(
      new RowStream(text, rows, {
        onEnd: (error) => this.finish(pending, error, stream.bytes()),
        abandon: () => this.abort(),
      }),
    );
    driverOf(this.client).addCommand(stream);
    return stream;
  }

  /** The binary log from the position that the session's variables name. The session can do nothing else afterwards. */
  binlog(server_id: number, known: Buffer | null): BinlogStream {
    const pending = this.start('BINLOG DUMP', null);
    const stream: BinlogStream = this.flows(
      new BinlogStream(server_id, known, (error) => this.finish(pending, error, stream.bytes())),
    );
    driverOf(this.client).addCommand(stream);
    return stream;
  }

  /** Ends the binary log, and the session with it. */
  endBinlog(): void {
    this.abort();
  }

  protected override async inspect(ctx: Context): Promise<SessionState> {
    const id = this.#id;
    if (id === null) return { state: 'working', sign: '', must_advance: false };
    return withSession(ctx, { phase: 'run', database: null }, (session) => inspectSession(session, id));
  }

  protected override async drop(busy: boolean): Promise<void> {
    driverOf(this.client).stream.destroy();
    if (busy && this.#id !== null) await killConnection(this.#id, this.ctx);
  }

  protected override leave(): Promise<void> {
    return closeClient(this.client);
  }

  protected override async reset(): Promise<KeptMysqlClient | null> {
    const { client } = this;
    const { stream } = driverOf(client);
    const late = setTimeout(() => stream.destroy(), RESET_TIMEOUT_MS);
    try {
      await new Promise<void>((resolve, reject) =>
        driverOf(client).reset((error) => (error ? reject(error) : resolve())),
      );
      for (const statement of sessionSettings(this.version, this.ctx.config)) await this.#run(statement);
    } catch {
      return null;
    } finally {
      clearTimeout(late);
    }
    const isAlive = () => stream.readable && stream.writable;
    return { client, id: this.#id, version: this.#version, isAlive, close: () => closeClient(client) };
  }

  #prepare(sql: string): Promise<ResultColumn[]> {
    return new Promise((resolve, reject) => {
      this.client.prepare(sql, (error, statement) => {
        if (error) return reject(error);
        const { columns, parameters } = statement as unknown as { columns: ResultColumn[]; parameters: unknown[] };
        // Otherwise the driver keeps the statement forever.
        this.client.unprepare(sql);
        if (parameters.length === 0) return resolve(columns);
        reject(
          new ConfigurationError(
            'statement_refused',
            'The query contains a question mark placeholder. Replace it with a value',
          ),
        );
      });
    });
  }

  #run(sql: string): Promise<QueryResult> {
    return new Promise((resolve, reject) => {
      const done = (error: QueryError | null, result: unknown) => {
        if (error) return reject(error);
        if (Array.isArray(result)) return resolve({ rows: result as Row[], count: 0, info: '', warnings: 0 });
        const header = result as ResultSetHeader;
        resolve({ rows: [], count: header.affectedRows, info: header.info, warnings: header.warningStatus });
      };
      this.client.query({ sql }, done);
    });
  }

  #loadData(text: string, lines: Buffer): Promise<LoadResult> {
    return new Promise((resolve, reject) => {
      driverOf(this.client).addCommand(new LoadData(text, lines, { resolve, reject }));
    });
  }
}

const factsOf = (ctx: Context, { phase, database }: Required<SessionOptions>) =>
  sessionFacts(ctx, { scheme: 'mysql', database: database ?? '', phase, failure: connectorError });

/** Runs `work` on a session of its own. */
export const withSession = <Result>(
  ctx: Context,
  options: SessionOptions,
  work: (session: MysqlSession) => Promise<Result>,
): Promise<Result> => onSession(MysqlSession.open(ctx, options), work);
