import type { Duplex } from 'node:stream';
import type { ConnectionOptions as TlsOptions } from 'node:tls';
import type { Connection, ConnectionOptions, SslOptions } from 'mysql2';
import { connectedSocket } from '../../contract/connect.ts';
import type { FailurePlace } from '../../kits/sql/failures.ts';
import { tlsOptions } from '../../kits/sql/settings.ts';
import type { ConnectorContext } from '../../contract/connector.ts';
import { refusesTls } from './failures.ts';
import type { DriverConnection } from './taken-socket.ts';
import type { ServerSettings } from './settings.ts';

const KILL_MS = 1_000;
/** Time for the server to close the connection before the socket is destroyed. */
const CLOSE_TIMEOUT_MS = 1_000;

type Context = ConnectorContext<ServerSettings>;

export interface LoginOptions {
  /** Null: no database. */
  database: string | null;
  phase: FailurePlace['phase'];
  /** Replaces the context's signal, which may already be aborted. */
  signal?: AbortSignal;
}

/** Connects and logs in. `ssl_mode` `prefer` falls back to plain text if the server has no TLS. Throws the driver's errors. */
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
    // Checked against the name in the certificate.
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
  // Loaded with its first use: processes start often, and most never need it.
  const { createConnection } = require('mysql2') as typeof import('mysql2');
  const client = createConnection(options);
  // A pending statement rejects with the error. Without a listener the process would exit.
  client.on('error', () => {});
  return client;
}

/** The driver has a separate option for checking the host name. */
const sslOptions = (mode: ServerSettings['ssl_mode'], { rejectUnauthorized, ca }: TlsOptions): SslOptions => ({
  rejectUnauthorized,
  ca: ca as string | undefined,
  verifyIdentity: mode === 'verify-full',
});

/** Closes the connection and resolves once the server has closed it, so that no session is left behind. */
export async function closeClient(client: Connection): Promise<void> {
  const { stream } = driverOf(client);
  if (!stream.destroyed) {
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, CLOSE_TIMEOUT_MS);
      stream.once('close', () => {
        clearTimeout(late);
        resolve();
      });
      client.end();
    });
  }
  client.destroy();
}

/** The driver's internal connection, which row streams need. */
export const driverOf = (client: Connection) => client as unknown as DriverConnection;

/**
 * Kills the connection `id` and its statement, over a separate connection. Always resolves within a second. The server
 * notices a closed socket only when it writes to it, so a sort or a wait for a lock has to be killed.
 */
export async function killConnection(id: string, ctx: Context): Promise<void> {
  const signal = AbortSignal.timeout(KILL_MS);
  const client = await connectClient(ctx, { database: null, phase: 'run', signal }).catch(() => null);
  if (!client) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    client.on('error', () => resolve());
    // An error means that the connection has already ended.
    client.query(`kill ${id}`, () => resolve());
  });
  client.destroy();
}
