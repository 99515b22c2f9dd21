import type pg from 'pg';
import {
  DatabaseSession,
  onSession,
  recordedConnect,
  type RowFlow,
  type SessionFacts,
  sessionFacts,
} from '../../kits/sql/session.ts';
import type { ConnectorContext, PendingRequest, SessionState } from '../../contract/connector.ts';
import type { KeptClient } from '../../../platform/net/kept-sessions.ts';
import { ConnectorError } from '../../contract/errors.ts';
import { cancelBackend, connectClient, type LoginOptions, socketOf } from './client.ts';
import { CopyIn } from './copy-in.ts';
import { CopyOut } from './copy-out.ts';
import { connectorError } from './failures.ts';
import { inspectSession } from './inspect.ts';
import { ReplicationStream } from './replication-stream.ts';
import type { ServerSettings } from './settings.ts';
import type { QueryResult, Row } from './result.ts';

interface QueryOptions {
  values?: (string | null)[];
  slow?: boolean;
}

/** `database` overrides the configured one. */
export type SessionOptions = Partial<LoginOptions> &
  Pick<LoginOptions, 'phase'> & {
    /** Its statements read the catalog, and run no function or query of a user, so they change nothing of the session. */
    reads_catalog?: boolean;
  };

type Context = ConnectorContext<ServerSettings>;

/** A value has the same text on every server, whatever the defaults of server and role are. */
const SETTINGS = {
  client_encoding: 'UTF8',
  datestyle: 'ISO, YMD',
  timezone: 'UTC',
  intervalstyle: 'iso_8601',
  extra_float_digits: '3',
  bytea_output: 'hex',
  lc_monetary: 'C',
  xmloption: 'content',
  standard_conforming_strings: 'on',
  tcp_keepalives_idle: '30',
  tcp_keepalives_interval: '10',
  tcp_keepalives_count: '3',
};

const setting = (name: string, value: string) => `pg_catalog.set_config('${name}', '${value}', false)`;

/**
 * A server otherwise waits 15 minutes for a client that has dropped off the network, whose transaction holds its locks. It
 * also takes a client that does not read for one that is gone, as that of a source is while the destination is busy, waits
 * for a lock or for a rate limit. Available from version 12; a look at pg_settings instead of the version takes 8 ms.
 */
const userTimeout = ({ config }: Context) => {
  const isSource = config.row_level_security !== undefined;
  return `case when pg_catalog.current_setting('server_version_num')::int >= 120000
  then ${setting('tcp_user_timeout', isSource ? '0' : '20000')} end`;
};

/**
 * As DISCARD ALL, which would have to be sent alone, but without plans: the catalog that the server has read stays. The
 * role is no setting for RESET ALL. The settings are one statement, since each statement has an answer of its own.
 */
const resetOf = (ctx: Context) =>
  `close all; set session authorization default; reset all; ${settingsOf(ctx)}, pg_catalog.pg_advisory_unlock_all(); ` +
  'deallocate all; unlisten *; discard temp; discard sequences';

/** Without row security, a statement that it would affect is an error. */
const settingsOf = (ctx: Context) => {
  const all = { ...SETTINGS, ...(ctx.config.row_level_security === 'refuse' && { row_security: 'off' }) };
  return `select ${[...Object.entries(all).map(([name, value]) => setting(name, value)), userTimeout(ctx)].join(', ')}`;
};

/** Time for the server to close the connection before the socket is destroyed. */
const CLOSE_TIMEOUT_MS = 1_000;

/** A connection to a server, with the same session settings everywhere. */
export class PgSession extends DatabaseSession<Context> {
  /** `query` takes several statements, and returns what the last one returns. */
  readonly takesSeveral = true;
  /** Of the process that serves this session, also behind a pool of connections. */
  #pid: string | null = null;
  #ahead: string[] = [];

  private readonly client: pg.Client;
  readonly #reads_catalog: boolean;
  private constructor(
    ctx: Context,
    facts: SessionFacts,
    connection: { client: pg.Client; pid: string | null; settings: string | null; reads_catalog: boolean },
  ) {
    super(ctx, facts, connection.settings);
    this.client = connection.client;
    this.#pid = connection.pid;
    this.#reads_catalog = connection.reads_catalog;
  }

  static async open(ctx: Context, options: SessionOptions): Promise<PgSession> {
    const database = options.database ?? ctx.config.database;
    const facts = sessionFacts(ctx, { scheme: 'postgres', database, phase: options.phase, failure: connectorError });
    const settings = options.replication ? null : keptUnder(ctx, database);
    const about = { settings, reads_catalog: options.reads_catalog ?? false };
    const kept = settings && (await ctx.sessions?.take<KeptPgClient>(settings, ctx.config));
    if (kept) return new PgSession(ctx, facts, { ...kept, ...about });
    const client = await recordedConnect(ctx, facts, () => connectClient(ctx, { ...options, database }));
    const session = new PgSession(ctx, facts, { client, pid: null, ...about });
    try {
      const { rows } = await session.query(`${settingsOf(ctx)}, pg_catalog.pg_backend_pid()`);
      session.#pid = rows[0]?.at(-1) ?? null;
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /**
   * Runs one statement, or without values several: the result is that of the last one. After an error the rest is not
   * run. `slow`: without a timeout.
   */
  async query(statement: string, { values = [], slow = false }: QueryOptions = {}): Promise<QueryResult> {
    // The extended protocol accepts a single statement.
    if (values.length > 0) await this.flush();
    const text = [...this.#ahead.splice(0), statement].join('; ');
    return this.recorded(this.start('QUERY', text), async () => {
      const query = this.client.query({ text, values: values.length ? values : undefined, rowMode: 'array' });
      const results: pg.QueryArrayResult | pg.QueryArrayResult[] = await (slow ? query : this.inTime(query));
      // Of several statements, the last one's.
      const result = Array.isArray(results) ? results.at(-1)! : results;
      return { rows: (result.rows ?? []) as Row[], count: result.rowCount ?? 0 };
    });
  }

  /**
   * Commits. Resolves with the server's answer, or before it with `seen` if that is true: close the session then without
   * waiting for it.
   */
  async commitSeen(seen: Promise<boolean>): Promise<void> {
    await this.flush();
    await this.recorded(this.start('QUERY', 'commit'), async () => {
      const done = this.client.query('commit');
      if (!(await Promise.race([done.then(() => true), seen]))) await done;
    });
  }

  /** Sends a statement together with the next one, in one message. Its error is that of the message. */
  ahead(statement: string): void {
    this.#ahead.push(statement);
  }

  /** Sends what waits for the next statement. */
  async flush(): Promise<void> {
    if (this.#ahead.length > 0) await this.query(this.#ahead.splice(0).join('; '));
  }

  /**
   * Runs statements in one message: the server answers all of them at once. After an error the rest is not run.
   * @param shown for the network log, which does not show values
   */
  async script(statements: readonly string[], shown: string): Promise<QueryResult[]> {
    await this.flush();
    return this.recorded(this.start('QUERY', shown), async () => {
      const text = statements.join(';\n');
      const results: pg.QueryArrayResult | pg.QueryArrayResult[] = await this.client.query({ text, rowMode: 'array' });
      return (Array.isArray(results) ? results : [results]).map(({ rows, rowCount }) => ({
        rows: (rows ?? []) as Row[],
        count: rowCount ?? 0,
      }));
    });
  }

  /** The columns that a statement returns, with their type OIDs. Several statements are rejected. */
  async describe(text: string): Promise<{ name: string; type: number; modifier: number }[]> {
    await this.flush();
    return this.recorded(this.start('DESCRIBE', text), async () => {
      // The extended protocol accepts a single statement.
      const config = { text, rowMode: 'array', queryMode: 'extended' } as pg.QueryArrayConfig;
      const { fields } = await this.inTime(this.client.query(config));
      return fields.map(({ name, dataTypeID, dataTypeModifier }) => ({
        name,
        type: dataTypeID,
        modifier: dataTypeModifier,
      }));
    });
  }

  /** The bytes of a COPY as they arrive. Leaving the iteration early closes the session. */
  copyOut(text: string, options: { binary: boolean; bare?: boolean; steady?: boolean }): CopyOut {
    const pending = this.#startFlow('COPY', text);
    const copy: CopyOut = this.flows(
      new CopyOut(text, {
        ...options,
        onEnd: (error) => this.finish(pending, error, copy.bytes()),
        abandon: () => this.abort(),
      }),
    );
    this.client.query(copy as unknown as pg.Submittable);
    return copy;
  }

  /** Statements that were sent ahead are part of the message. */
  copyIn(statement: string): CopyIn {
    const text = [...this.#ahead.splice(0), statement].join('; ');
    const pending = this.#startFlow('COPY', text);
    const copy: CopyIn = this.flows(new CopyIn(text, (error) => this.finish(pending, error, copy.bytes())));
    this.client.query(copy as unknown as pg.Submittable);
    return copy;
  }

  /** START_REPLICATION, on a session opened for it. The session accepts nothing else until the stream's `end`. */
  replicate<Message>(options: {
    text: string;
    confirmed: string;
    decode(bytes: Buffer, from: number, to: number): Message;
  }) {
    const pending = this.#startFlow('REPLICATE', options.text);
    const stream: ReplicationStream<Message> = this.flows(
      new ReplicationStream({ ...options, onEnd: (error) => this.finish(pending, error, stream.bytes()) }),
    );
    this.client.query(stream as unknown as pg.Submittable);
    return stream;
  }

  #startFlow(method: string, text: string): PendingRequest {
    if (this.#ahead.length > 0) throw new Error(`${this.#ahead.join('; ')} would be sent after ${method}`);
    return this.start(method, text);
  }

  protected override async inspect(ctx: Context, flow: RowFlow | null): Promise<SessionState> {
    const database = this.client.database ?? ctx.config.database;
    const pid = this.#pid;
    if (pid === null) return { state: 'working', sign: '', must_advance: false };
    try {
      return await withSession(ctx, { phase: 'run', database }, (session) => inspectSession(session, pid, flow));
    } catch (error) {
      // It answers, but has no connection left for the question.
      if (!(error instanceof ConnectorError) || error.code !== 'server_out_of_resources') throw error;
      return { state: 'working', sign: '', must_advance: false };
    }
  }

  protected override async drop(busy: boolean): Promise<void> {
    socketOf(this.client).destroy();
    if (busy) await cancelBackend(this.client, this.ctx);
  }

  protected override leave(): Promise<void> {
    return logOut(this.client);
  }

  protected override async reset(): Promise<KeptPgClient | null> {
    const { client } = this;
    const status = client.getTransactionStatus();
    if (status !== 'I' && status !== 'T') return null;
    const undo = status === 'T' ? 'rollback; ' : '';
    const late = setTimeout(() => socketOf(client).destroy(), CLOSE_TIMEOUT_MS);
    const isNew = await client.query(`${undo}${resetOf(this.ctx)}`).then(
      () => true,
      () => false,
    );
    clearTimeout(late);
    return isNew ? this.#kept() : null;
  }

  protected override unchanged(): KeptPgClient | null {
    return this.#reads_catalog && this.client.getTransactionStatus() === 'I' ? this.#kept() : null;
  }

  #kept(): KeptPgClient {
    const { client } = this;
    const isAlive = () => socketOf(client).readable && socketOf(client).writable;
    return { client, pid: this.#pid, isAlive, close: () => logOut(client) };
  }
}

interface KeptPgClient extends KeptClient {
  client: pg.Client;
  pid: string | null;
}

const keptUnder = ({ config }: Context, database: string) => JSON.stringify(['postgres', database, config]);

async function logOut(client: pg.Client): Promise<void> {
  const ended = client.end().catch(() => {});
  const late = setTimeout(() => socketOf(client).destroy(), CLOSE_TIMEOUT_MS);
  await ended;
  clearTimeout(late);
}

/** Runs `work` on a session of its own. */
export const withSession = <Result>(
  ctx: Context,
  options: SessionOptions,
  work: (session: PgSession) => Promise<Result>,
): Promise<Result> => onSession(PgSession.open(ctx, options), work);
