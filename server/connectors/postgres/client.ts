import pg from 'pg';
import type { DriverConnection } from './copy-out.ts';
import type { ServerSettings, tlsOptions } from './settings.ts';

const CANCEL_MS = 1_000;
/** Raw text of every value: decoded ones would lose microseconds and long numbers. */
const TYPES = { getTypeParser: () => (value: string) => value };

/** The driver's client, not connected yet. `tls`: false for a line in the clear. */
export function newClient(config: ServerSettings, database: string, tls: ReturnType<typeof tlsOptions>): pg.Client {
  const client = new pg.Client({
    host: config.host,
    port: config.port,
    database,
    user: config.username,
    // A function, since an empty string would make the driver look into PGPASSWORD of this process.
    password: () => config.password,
    ssl: tls,
    connectionTimeoutMillis: config.connect_timeout_seconds * 1000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
    application_name: 'data-pipelines',
    statement_timeout: config.statement_timeout_seconds * 1000 || undefined,
    types: TYPES,
  });
  // Whoever waits for a statement is told; without a listener the process would end.
  client.on('error', () => {});
  return client;
}

/** The socket of the driver's client: plain, or TLS once that is up. */
export const socketOf = (client: pg.Client) =>
  (client as unknown as { connection: DriverConnection }).connection.stream;

/**
 * Ends what the server is doing for the client; resolves within a second, come what may.
 * A closed socket is noticed only when the server writes to it; a sort or a lock it waits for has to be cancelled.
 */
export async function cancelBackend(client: pg.Client, { host, port }: ServerSettings): Promise<void> {
  const { processID, secretKey, ssl } = client as unknown as {
    processID: number | null;
    secretKey: number;
    ssl: false | object;
  };
  if (processID === null) return;
  const line = new pg.Connection({ ssl }) as unknown as CancelConnection;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, CANCEL_MS);
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    line.on('error', done);
    // The server closes the line when it has sent the signal.
    line.on('end', done);
    line.on('connect', () => (ssl ? line.requestSsl() : line.cancel(processID, secretKey)));
    line.on('sslconnect', () => line.cancel(processID, secretKey));
    line.connect(port, host);
  });
  line.stream.destroy();
}

interface CancelConnection {
  stream: DriverConnection['stream'];
  on(event: 'error' | 'end' | 'connect' | 'sslconnect', listener: () => void): void;
  connect(port: number, host: string): void;
  requestSsl(): void;
  cancel(processID: number, secretKey: number): void;
}
