import type { Socket } from 'node:net';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import type { FTPContext, FTPResponse, TransferStrategy } from 'basic-ftp';
import type { ConnectorContext } from '../../../../contract/connector.ts';
import { ConfigurationError, ConnectorError, RetryableError } from '../../../../contract/errors.ts';
import type { FtpLocation } from '../../settings/ftp.ts';
import { replyOf } from './failures.ts';
import { tlsOver } from './tls.ts';

type Context = Pick<ConnectorContext<FtpLocation>, 'config' | 'connect' | 'signal'>;

interface Server {
  /** The address that the control connection leads to. */
  address: string;
  server: string;
  tls: ConnectionOptions | null;
}

/**
 * Opens the data connection of each transfer in passive mode. It always leads to the address of the control connection,
 * whatever host the server names: it could be one that the service must not call.
 */
export function dataConnections(ctx: Context, { address, server, tls }: Server): TransferStrategy {
  let extended = true;
  return async (ftp) => {
    let answer = extended ? await ftp.request('EPSV').catch(refused) : null;
    extended = answer !== null;
    answer ??= await ftp.request('PASV');
    const port = portIn(answer, server);
    const socket = await connected(ctx, { address, port, server });
    ftp.dataSocket = failingAfterReply(ftp, tls ? encrypted(ftp, socket, tls) : socket);
    return answer;
  };
}

/** How long a failed connection waits, at most, for the reply that explains it. */
const REPLY_MS = 5_000;

/** Servers without EPSV know PASV. */
function refused(error: unknown): null {
  if (replyOf(error) === null) throw error;
  return null;
}

/** `229 … (|||6446|)` or `227 … (192,168,1,100,10,229)` */
function portIn({ message }: FTPResponse, server: string): number {
  const extended = /\(([!-~])\1\1(\d{1,5})\1\)/.exec(message)?.[2];
  const [, high, low] = /\d{1,3},\d{1,3},\d{1,3},\d{1,3},(\d{1,3}),(\d{1,3})/.exec(message) ?? [];
  const port = extended === undefined ? Number(high) * 256 + Number(low) : Number(extended);
  if (port > 0 && port < 65_536) return port;
  throw new ConfigurationError('malformed_answer', `${server}: no port for data in "${message.slice(0, 200)}"`);
}

async function connected(
  { connect, config, signal }: Context,
  { address, port, server }: { address: string; port: number; server: string },
): Promise<Socket> {
  try {
    const timeout_ms = config.timeout_seconds * 1000;
    return (await connect({ host: address, port, phase: 'run', timeout_ms })) as Socket;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ConnectorError) throw error;
    const text = `${server} offers port ${port} for data, which cannot be reached: ${(error as Error).message}`;
    throw new RetryableError('data_connection_failed', `${text}. Open its passive ports in the firewall`, {
      cause: error,
    });
  }
}

/** Servers want the session of the control connection again, so that no other client can take the data. */
function encrypted(ftp: FTPContext, socket: Socket, tls: ConnectionOptions): TLSSocket {
  const session = ftp.tlsSessionStore ?? (ftp.socket as TLSSocket).getSession();
  const secured = tlsOver(socket, { ...tls, ...(session && { session }) });
  // Tickets of TLS 1.3 are for one use each.
  secured.on('session', (ticket: Buffer) => {
    ftp.tlsSessionStore = ticket;
  });
  return secured;
}

/** A server that refuses a transfer resets its connection, often before the reply with the reason arrives. */
function failingAfterReply<Data extends Socket>(ftp: FTPContext, data: Data): Data {
  const pass = data.emit.bind(data) as (event: string | symbol, ...given: unknown[]) => boolean;
  const waiting = (event: string | symbol, ...given: unknown[]) => {
    const isFailure = event === 'error' || (event === 'close' && given[0] === true);
    if (!isFailure) return pass(event, ...given);
    afterReply(ftp, () => pass(event, ...given));
    return true;
  };
  return Object.assign(data, { emit: waiting });
}

/** Once the server has replied or closed the control connection. What it said is read before. */
function afterReply({ socket }: FTPContext, then: () => void): void {
  const end = () => {
    clearTimeout(timer);
    socket.off('data', end);
    socket.off('close', end);
    setImmediate(then);
  };
  const timer = setTimeout(end, REPLY_MS);
  socket.on('data', end);
  socket.on('close', end);
}
