import type { Duplex } from 'node:stream';
import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { type Connection, type ConnectionOptions, createConnection, type SslOptions } from 'mysql2';
import { connectedSocket } from '../../contract/connect.ts';
import type { FailurePlace } from '../../kits/sql/failures.ts';
import { tlsOptions } from '../../kits/sql/settings.ts';
import type { ConnectorContext } from '../../contract/connector.ts';
import { refusesTls } from './failures.ts';
import type { DriverConnection } from './row-stream.ts';
import type { ServerSettings } from './settings.ts';

const KILL_MS = 1_000;
/** A server that does not answer a farewell is left without one. */
const FAREWELL_MS = 1_000;

type Context = ConnectorContext<ServerSettings>;

export interface LoginOptions {
  /** Null: none. */
  database: string | null;
  phase: FailurePlace['phase'];
  /** Connect though the context's signal is aborted, until this one is. */
  signal?: AbortSignal;
}

/** Connects and logs in. `ssl_mode` `prefer` does so in the clear where the server has no TLS. Throws as the driver does. */
export async function connectClient(ctx: Context, options: LoginOptions): Promise<Connection> {
  const { ssl_mode, connect_timeout_seconds } = ctx.config;
  const deadline = performance.now() + connect_timeout_seconds * 1000;
  const signal = options.signal ?? ctx.signal;
  const tls = tlsOptions(ctx.config);
  try {
    return await logIn(ctx, { ...options, signal, tls, deadline });
  } catch (error) {
    if (ssl_mode !== 'prefer' || !refusesTls(error as Error) || signal.aborted) throw error;
    return logIn(ctx, { ...options, signal, tls: null, deadline });
  }
}

type Login = LoginOptions & { signal: AbortSignal; tls: TlsOptions | null; deadline: number };

async function logIn({ config, connect }: Context, options: Login): Promise<Connection> {
  const { host, port } = config;
  const { phase, signal, deadline } = options;
  const left = () => Math.max(1, deadline - performance.now());
  const socket = await connect({ host, port, phase, timeout_ms: left(), signal });
  const client = newClient(config, { ...options, socket, timeout_ms: left() });
  const letGo = () => {
    driverOf(client).stream.destroy();
    socket.destroy();
  };
  signal.addEventListener('abort', letGo, { once: true });
  try {
    await new Promise<void>((resolve, reject) => client.connect((error) => (error ? reject(error) : resolve())));
    return client;
  } catch (error) {
    letGo();
    throw error;
  } finally {
    signal.removeEventListener('abort', letGo);
  }
}

type ClientOptions = Login & { socket: Duplex; timeout_ms: number };

function newClient(config: ServerSettings, { database, tls, socket, timeout_ms }: ClientOptions): Connection {
  const options: ConnectionOptions = {
    // For the name in the certificate.
    host: config.host,
    port: config.port,
    database: database ?? undefined,
    user: config.username,
    password: config.password,
    ssl: tls ? sslOptions(config.ssl_mode, tls) : undefined,
    stream: connectedSocket(socket, config.host),
    connectTimeout: timeout_ms,
    charset: 'utf8mb4',
    rowsAsArray: true,
    supportBigNumbers: true,
    bigNumberStrings: true,
    dateStrings: true,
    // Raw text of every value: decoded ones would lose microseconds and long numbers.
    typeCast: (field) => field.string('utf8'),
    // Rows changed are counted and not rows found; rows streams speak the plain form of COM_QUERY.
    flags: ['-FOUND_ROWS', '-CLIENT_QUERY_ATTRIBUTES', '-IGNORE_SPACE'],
    connectAttributes: { program_name: 'data-pipelines' },
  };
  const client = createConnection(options);
  // Whoever waits for a statement is told; without a listener the process would end.
  client.on('error', () => {});
  return client;
}

/** The driver checks the name by a switch of its own. */
const sslOptions = (mode: ServerSettings['ssl_mode'], { rejectUnauthorized, ca }: TlsOptions): SslOptions => ({
  rejectUnauthorized,
  ca: ca as string | undefined,
  verifyIdentity: mode === 'verify-full',
});

/** Says good-bye; resolves when the server has closed the line, so that nobody finds the connection still there. */
export async function farewell(client: Connection): Promise<void> {
  const { stream } = driverOf(client);
  if (!stream.destroyed) {
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, FAREWELL_MS);
      stream.once('close', () => {
        clearTimeout(late);
        resolve();
      });
      client.end();
    });
  }
  client.destroy();
}

/** The driver's connection as streams of rows need it. */
export const driverOf = (client: Connection) => client as unknown as DriverConnection;

/**
 * Ends, over a connection of its own, what the server is doing for the one with the number `id`, and that one too;
 * resolves within a second, come what may. A closed socket is noticed only when the server writes to it; a sort or a
 * lock it waits for has to be ended.
 */
export async function killConnection(id: string, ctx: Context): Promise<void> {
  const signal = AbortSignal.timeout(KILL_MS);
  const client = await connectClient(ctx, { database: null, phase: 'run', signal }).catch(() => null);
  if (!client) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    client.on('error', () => resolve());
    // It may have ended by itself; then there is nothing to be said either.
    client.query(`kill ${id}`, () => resolve());
  });
  client.destroy();
}
