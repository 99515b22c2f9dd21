import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import type { Client } from 'basic-ftp';
import type { ConnectorContext } from '../../../../contract/connector.ts';
import { AuthenticationError } from '../../../../contract/errors.ts';
import type { FtpLocation } from '../../settings/ftp.ts';
import { reachError } from '../folders/reach-error.ts';
import { dataConnections } from './data-connections.ts';
import { loginError, type LoginStep } from './failures.ts';
import { handshake, tlsOptions, tlsOver } from './tls.ts';

export type FtpContext = Pick<ConnectorContext<FtpLocation>, 'config' | 'connect' | 'recorder' | 'signal'>;

interface FtpLogin {
  client: Client;
  /** Protocol of the encryption, such as `TLSv1.3`; null without. */
  protocol: string | null;
}

const DEFAULT_PORT = { explicit: 21, implicit: 990, none: 21 };

const portOf = ({ config }: Pick<FtpContext, 'config'>) => config.port ?? DEFAULT_PORT[config.ftp_encryption];
/** `host:port`, as messages show it. */
export const serverOf = (ctx: Pick<FtpContext, 'config'>) => `${ctx.config.host}:${portOf(ctx)}`;

/** Without a user name the login is anonymous. @throws ConnectorError, or the reason of the signal */
export async function logIn(ctx: FtpContext): Promise<FtpLogin> {
  const { config, signal } = ctx;
  const { host = '', timeout_seconds, ftp_encryption } = config;
  const [port, server, tls] = [portOf(ctx), serverOf(ctx), tlsOptions(config)];
  const username = config.username || 'anonymous';
  const password = config.username ? (config.password ?? '') : 'anonymous@';
  if (/[\r\n\0]/.test(username + password)) {
    throw new AuthenticationError('ftp_login_invalid', 'The username or password contains a line end or NUL');
  }
  const timeout_ms = timeout_seconds * 1000;
  const socket = (await ctx.connect({ host, port, phase: 'run', timeout_ms }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw reachError(error, { host, port });
  })) as Socket;
  // Loaded with its first use: processes start often, and most never need it.
  const { Client } = require('basic-ftp') as typeof import('basic-ftp');
  const client = new Client(timeout_ms);
  const stop = () => letGo(client, socket);
  signal.addEventListener('abort', stop, { once: true });
  const secured = (options: ConnectionOptions) => secure(socket, options, { server, seconds: timeout_seconds, signal });
  let step: LoginStep = ftp_encryption === 'implicit' ? 'tls' : 'greeting';
  let encrypted: TLSSocket | null = null;
  try {
    if (tls && ftp_encryption === 'implicit') encrypted = await secured(tls);
    client.ftp.socket = encrypted ?? socket;
    step = 'greeting';
    await greeting(client);
    if (tls && ftp_encryption === 'explicit') {
      step = 'tls';
      await client.send('AUTH TLS');
      encrypted = await secured(tls);
      client.ftp.socket = encrypted;
      // The client has removed all listeners, and an error without one would end the process.
      socket.on('error', () => {});
    }
    // After the socket, which resets them.
    if (tls) client.ftp.tlsOptions = tls;
    step = 'login';
    await client.login(username, password);
    await client.useDefaultSettings();
    if (tls) {
      step = 'tls';
      // Refused, data would be sent without encryption.
      await client.send('PROT P');
    }
    client.prepareTransfer = dataConnections(ctx, { address: socket.remoteAddress ?? host, server, tls });
    return { client, protocol: encrypted && (encrypted.getProtocol() ?? 'TLS') };
  } catch (error) {
    stop();
    signal.throwIfAborted();
    throw loginError(error, { server, step, encrypted: encrypted !== null });
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Closes the client and the socket, which the client may not have taken over. */
function letGo(client: Client, socket: Duplex): void {
  client.close();
  socket.destroy();
}

async function secure(
  socket: Socket,
  options: ConnectionOptions,
  limits: { server: string; seconds: number; signal: AbortSignal },
): Promise<TLSSocket> {
  const encrypted = tlsOver(socket, options);
  try {
    await handshake(encrypted, limits);
  } catch (error) {
    encrypted.destroy();
    throw error;
  }
  // The client compares the ports to see that this socket replaces the plain one, which it would close otherwise.
  if (encrypted.localPort !== socket.localPort) {
    Object.defineProperty(encrypted, 'localPort', { value: socket.localPort });
  }
  return encrypted;
}

/** The server speaks first. */
const greeting = (client: Client): Promise<void> =>
  client.ftp.handle(undefined, (answer, task) => {
    if (answer instanceof Error) return task.reject(answer);
    if (answer.code >= 200 && answer.code < 300) return task.resolve(undefined);
    task.reject(Object.assign(new Error(answer.message), { code: answer.code }));
  });
