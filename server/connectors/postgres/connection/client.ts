import type { Duplex } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import pg from 'pg';
import { connectedSocket } from '../../contract/connect.ts';
import type { FailurePlace } from '../../kits/sql/failures.ts';
import { tlsOptions } from '../../kits/sql/settings.ts';
import type { ConnectorContext } from '../../contract/connector.ts';
import type { DriverConnection } from './copy-out.ts';
import { refusesTls } from './failures.ts';
import type { ServerSettings } from './settings.ts';

export const APPLICATION_NAME = 'data-pipelines';

const CANCEL_MS = 1_000;
/** Raw text of every value: decoded ones would lose microseconds and long numbers. */
const TYPES = { getTypeParser: () => (value: string) => value };

type Context = ConnectorContext<ServerSettings>;

export interface LoginOptions {
  database: string;
  phase: FailurePlace['phase'];
  /** Opens a connection that speaks the replication protocol as well as SQL. */
  replication?: 'database';
}

/** Connects and logs in. `ssl_mode` `prefer` falls back to plain text if the server has no TLS. Throws the driver's errors. */
export async function connectClient(ctx: Context, options: LoginOptions): Promise<pg.Client> {
  const { ssl_mode, connect_timeout_seconds } = ctx.config;
  const deadline = performance.now() + connect_timeout_seconds * 1000;
  const tls = tlsOptions(ctx.config) ?? false;
  try {
    return await logIn(ctx, { ...options, tls, deadline });
  } catch (error) {
    if (ssl_mode !== 'prefer' || !refusesTls(error as Error) || ctx.signal.aborted) throw error;
    return logIn(ctx, { ...options, tls: false, deadline });
  }
}

async function logIn(
  ctx: Context,
  options: LoginOptions & { tls: false | ConnectionOptions; deadline: number },
): Promise<pg.Client> {
  const { host, port } = ctx.config;
  const { database, phase, deadline } = options;
  const left = () => Math.max(1, deadline - performance.now());
  // After a stop, the cleanup has a signal of its own.
  const socket = await ctx.connect({ host, port, database, phase, timeout_ms: left(), signal: ctx.signal });
  const client = newClient(ctx.config, { ...options, socket, timeout_ms: left() });
  const destroySockets = () => {
    socketOf(client).destroy();
    socket.destroy();
  };
  ctx.signal.addEventListener('abort', destroySockets, { once: true });
  try {
    await client.connect();
    return client;
  } catch (error) {
    destroySockets();
    throw error;
  } finally {
    ctx.signal.removeEventListener('abort', destroySockets);
  }
}

interface ClientOptions extends LoginOptions {
  tls: false | ConnectionOptions;
  socket: Duplex;
  timeout_ms: number;
}

function newClient(config: ServerSettings, options: ClientOptions): pg.Client {
  const client = new pg.Client({
    // Checked against the name in the certificate.
    host: config.host,
    port: config.port,
    database: options.database,
    user: config.username,
    // A function, because for an empty string the driver falls back to PGPASSWORD of this process.
    password: () => config.password,
    ssl: options.tls,
    stream: () => connectedSocket(options.socket, config.host),
    connectionTimeoutMillis: options.timeout_ms,
    application_name: APPLICATION_NAME,
    statement_timeout: config.statement_timeout_seconds * 1000 || undefined,
    types: TYPES,
    ...(options.replication && { replication: options.replication }),
  });
  // A pending statement rejects with the error. Without a listener the process would exit.
  client.on('error', () => {});
  return client;
}

/** The socket of the driver's client: plain, or TLS once it is established. */
export const socketOf = (client: pg.Client) =>
  (client as unknown as { connection: DriverConnection }).connection.stream;

/**
 * Cancels the client's statement on the server. Always resolves within a second.
 * The server notices a closed socket only when it writes to it, so a sort or a wait for a lock has to be cancelled.
 */
export async function cancelBackend(client: pg.Client, { config, connect }: Context): Promise<void> {
  const { processID, secretKey, ssl } = client as unknown as {
    processID: number | null;
    secretKey: number;
    ssl: false | object;
  };
  if (processID === null) return;
  const { host, port } = config;
  const database = client.database ?? config.database;
  const signal = AbortSignal.timeout(CANCEL_MS);
  const socket = await connect({ host, port, database, phase: 'run', timeout_ms: CANCEL_MS, signal }).catch(() => null);
  if (!socket) return;
  const line = new pg.Connection({ ssl, stream: () => connectedSocket(socket, host) }) as unknown as CancelConnection;
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    line.on('error', resolve);
    // The server closes the connection once it has sent the signal.
    line.on('end', resolve);
    line.on('connect', () => (ssl ? line.requestSsl() : line.cancel(processID, secretKey)));
    line.on('sslconnect', () => line.cancel(processID, secretKey));
    line.connect(port, host);
  });
  line.stream.destroy();
  socket.destroy();
}

interface CancelConnection {
  stream: DriverConnection['stream'];
  on(event: 'error' | 'end' | 'connect' | 'sslconnect', listener: () => void): void;
  connect(port: number, host: string): void;
  requestSsl(): void;
  cancel(processID: number, secretKey: number): void;
}
