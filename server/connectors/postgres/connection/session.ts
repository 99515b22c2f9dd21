import type pg from 'pg';
import {
  DatabaseSession,
  onSession,
  recordedConnect,
  type RowFlow,
  type SessionFacts,
  sessionFacts,
} from '../../kits/sql/session.ts';
import type { ConnectorContext, SessionState } from '../../contract/connector.ts';
import type { KeptClient } from '../../../platform/net/kept-sessions.ts';
import { ConnectorError } from '../../contract/errors.ts';
import { cancelBackend, connectClient, type LoginOptions, socketOf } from './client.ts';
import { CopyIn } from './copy-in.ts';
import { CopyOut } from './copy-out.ts';
import { connectorError } from './failures.ts';
import { inspectSession } from './inspect.ts';
import { ReplicationStream } from './replication-stream.ts';
import type { ServerSettings } from './settings.ts';

export type Row = (string | null)[];
export interface QueryResult {
  rows: Row[];
  /** Number of rows affected. */
  count: number;
}

interface QueryOptions {
  values?: (string | null)[];
  slow?: boolean;
}

/** `database` overrides the configured one. */
export type SessionOptions = Partial<LoginOptions> & Pick<LoginOptions, 'phase'>;

type Context = ConnectorContext<ServerSettings>;

/** A value has the same text on every server, whatever the defaults of server and role are. */
const SETTINGS =
  "set client_encoding = 'UTF8'; set datestyle = 'ISO, YMD'; set timezone = 'UTC'; set intervalstyle = 'iso_8601'; " +
  "set extra_float_digits = 3; set bytea_output = 'hex'; set lc_monetary = 'C'; set xmloption = 'content'; " +
  'set standard_conforming_strings = on; set tcp_keepalives_idle = 30; set tcp_keepalives_interval = 10; ' +
  'set tcp_keepalives_count = 3; ' +
  // Otherwise the server waits 15 minutes for a client that has dropped off the network. Available from version 12; a look
  // at pg_settings instead of the version takes 8 ms.
  "select case when pg_catalog.current_setting('server_version_num')::int >= 120000 then " +
  "pg_catalog.set_config('tcp_user_timeout', '20000', false) end";

/** As DISCARD ALL, which would have to be sent alone, but without plans: the catalog that the server has read stays. */
const RESET =
  'reset all; select pg_catalog.pg_advisory_unlock_all(); close all; deallocate all; unlisten *; discard temp';

/** Without row security, a statement that it would affect is an error. */
const settingsOf = ({ config }: Context) =>
  `${SETTINGS}${config.row_level_security === 'refuse' ? '; set row_security = off' : ''}`;

/** Time for the server to close the connection before the socket is destroyed. */
const CLOSE_TIMEOUT_MS = 1_000;

/** A connection to a server, with the same session settings everywhere. */
export class PgSession extends DatabaseSession<Context> {
  /** Of the process that serves this session, also behind a pool of connections. */
  #pid: string | null = null;

  private readonly client: pg.Client;
  private constructor(
    ctx: Context,
    facts: SessionFacts,
    { client, pid, settings }: { client: pg.Client; pid: string | null; settings: string | null },
  ) {
    super(ctx, facts, settings);
    this.client = client;
    this.#pid = pid;
  }

  static async open(ctx: Context, options: SessionOptions): Promise<PgSession> {
    const database = options.database ?? ctx.config.database;
    const facts = sessionFacts(ctx, { scheme: 'postgres', database, phase: options.phase, failure: connectorError });
    const settings = options.replication ? null : keptUnder(ctx, database);
    const kept = settings && (await ctx.sessions?.take<KeptPgClient>(settings, ctx.config));
    if (kept) return new PgSession(ctx, facts, { ...kept, settings });
    const client = await recordedConnect(ctx, facts, () => connectClient(ctx, { ...options, database }));
    const session = new PgSession(ctx, facts, { client, pid: null, settings });
    try {
      const { rows } = await session.query(`${settingsOf(ctx)}; select pg_catalog.pg_backend_pid()`);
      session.#pid = rows[0]?.[0] ?? null;
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /** Runs one statement. `slow`: without a timeout. */
  async query(text: string, { values = [], slow = false }: QueryOptions = {}): Promise<QueryResult> {
    return this.recorded(this.start('QUERY', text), async () => {
      const query = this.client.query({ text, values: values.length ? values : undefined, rowMode: 'array' });
      const results: pg.QueryArrayResult | pg.QueryArrayResult[] = await (slow ? query : this.inTime(query));
      // Of several statements, the last one's.
      const result = Array.isArray(results) ? results.at(-1)! : results;
      return { rows: (result.rows ?? []) as Row[], count: result.rowCount ?? 0 };
    });
  }

  /**
   * Runs statements in one message: the server answers all of them at once. After an error the rest is not run.
   * @param shown for the network log, which does not show values
   */
  async script(statements: readonly string[], shown: string): Promise<QueryResult[]> {
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
    const pending = this.start('COPY', text);
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

  copyIn(text: string): CopyIn {
    const pending = this.start('COPY', text);
    const copy: CopyIn = this.flows(new CopyIn(text, (error) => this.finish(pending, error, copy.bytes())));
    this.client.query(copy as unknown as pg.Submittable);
    return copy;
  }

  /** START_REPLICATION, on a session opened for it. The session accepts nothing else until the stream's `end`. */
  replicate<Message>(options: { text: string; confirmed: string; decode(bytes: Buffer, at: number): Message }) {
    const pending = this.start('REPLICATE', options.text);
    const stream: ReplicationStream<Message> = this.flows(
      new ReplicationStream({ ...options, onEnd: (error) => this.finish(pending, error, stream.bytes()) }),
    );
    this.client.query(stream as unknown as pg.Submittable);
    return stream;
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
    const isNew = await client.query(`${undo}${RESET}; ${settingsOf(this.ctx)}`).then(
      () => true,
      () => false,
    );
    clearTimeout(late);
    if (!isNew) return null;
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
