import { type Connection, type ConnectionOptions, createConnection } from 'mysql2';
import type { DriverConnection } from './row-stream.ts';
import type { ServerSettings, tlsOptions } from './settings.ts';

const KILL_MS = 1_000;
/** A server that does not answer a farewell is left without one. */
const FAREWELL_MS = 1_000;

/** The driver's connection, connecting. `tls`: undefined for a line in the clear. */
export function newClient(
  config: ServerSettings,
  database: string | null,
  tls: ReturnType<typeof tlsOptions>,
): Connection {
  const options: ConnectionOptions = {
    host: config.host,
    port: config.port,
    database: database ?? undefined,
    user: config.username,
    password: config.password,
    ssl: tls,
    connectTimeout: config.connect_timeout_seconds * 1000,
    enableKeepAlive: true,
    keepAliveInitialDelay: 30_000,
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

/** Resolves when the server has let us in. */
export const connected = (client: Connection) =>
  new Promise<void>((resolve, reject) => client.connect((error) => (error ? reject(error) : resolve())));

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
export async function killConnection(
  id: string,
  config: ServerSettings,
  tls: ReturnType<typeof tlsOptions>,
): Promise<void> {
  const client = newClient(config, null, tls);
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, KILL_MS);
    // It may have ended by itself; then there is nothing to be said either.
    client.query(`kill ${id}`, () => {
      clearTimeout(timer);
      resolve();
    });
    client.on('error', () => resolve());
  });
  client.destroy();
}
