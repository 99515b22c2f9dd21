import type { Socket } from 'node:net';
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
  refuseControls(config);
  const socket = await connected(ctx);
  // Loaded with its first use: processes start often, and most never need it.
  const { Client } = require('basic-ftp') as typeof import('basic-ftp');
  const client = new Client(config.timeout_seconds * 1000);
  const stop = () => letGo(client, socket);
  signal.addEventListener('abort', stop, { once: true });
  const opening: Opening = { ctx, client, socket, tls: tlsOptions(config), encrypted: null, step: 'greeting' };
  try {
    await greeted(opening);
    await authenticated(opening);
    const { encrypted, tls } = opening;
    const address = socket.remoteAddress ?? config.host ?? '';
    client.prepareTransfer = dataConnections(ctx, { address, server: serverOf(ctx), tls });
    return { client, protocol: encrypted && (encrypted.getProtocol() ?? 'TLS') };
  } catch (error) {
    stop();
    signal.throwIfAborted();
    const { step, encrypted } = opening;
    throw loginError(error, { server: serverOf(ctx), step, encrypted: encrypted !== null });
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** A login on its way. */
interface Opening {
  ctx: FtpContext;
  client: Client;
  socket: Socket;
  tls: ConnectionOptions | null;
  encrypted: TLSSocket | null;
  step: LoginStep;
}

function refuseControls({ username, password = '' }: FtpLocation): void {
  if (!/[\r\n\0]/.test(username + password)) return;
  throw new AuthenticationError('ftp_login_invalid', 'The username or password contains a line end or NUL');
}

async function connected(ctx: FtpContext): Promise<Socket> {
  const [{ host = '', timeout_seconds }, port] = [ctx.config, portOf(ctx)];
  try {
    return (await ctx.connect({ host, port, phase: 'run', timeout_ms: timeout_seconds * 1000 })) as Socket;
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw reachError(error, { host, port });
  }
}

/** Waits for the greeting, with TLS before or after it. */
async function greeted(opening: Opening): Promise<void> {
  const { ctx, client, socket, tls } = opening;
  const isImplicit = ctx.config.ftp_encryption === 'implicit';
  if (tls && isImplicit) await secure(opening, tls);
  client.ftp.socket = opening.encrypted ?? socket;
  opening.step = 'greeting';
  await greeting(client);
  if (tls && !isImplicit) {
    opening.step = 'tls';
    await client.send('AUTH TLS');
    client.ftp.socket = await secure(opening, tls);
    // The client has removed all listeners, and an error without one would end the process.
    socket.on('error', () => {});
  }
  // After the socket, which resets them.
  if (tls) client.ftp.tlsOptions = tls;
}

async function authenticated(opening: Opening): Promise<void> {
  const { client, tls } = opening;
  const { username, password = '' } = opening.ctx.config;
  opening.step = 'login';
  await (username ? client.login(username, password) : client.login('anonymous', 'anonymous@'));
  await client.useDefaultSettings();
  if (!tls) return;
  opening.step = 'tls';
  // Refused, data would be sent without encryption.
  await client.send('PROT P');
}

/** Closes the client and the socket, which the client may not have taken over. */
function letGo(client: Client, socket: Socket): void {
  client.close();
  socket.destroy();
}

async function secure(opening: Opening, options: ConnectionOptions): Promise<TLSSocket> {
  const { ctx, socket } = opening;
  opening.step = 'tls';
  const encrypted = tlsOver(socket, options);
  try {
    await handshake(encrypted, { server: serverOf(ctx), seconds: ctx.config.timeout_seconds, signal: ctx.signal });
  } catch (error) {
    encrypted.destroy();
    throw error;
  }
  // The client compares the ports to see that this socket replaces the plain one, which it would close otherwise.
  if (encrypted.localPort !== socket.localPort) {
    Object.defineProperty(encrypted, 'localPort', { value: socket.localPort });
  }
  opening.encrypted = encrypted;
  return encrypted;
}

/** The server speaks first. */
const greeting = (client: Client): Promise<void> =>
  client.ftp.handle(undefined, (answer, task) => {
    if (answer instanceof Error) return task.reject(answer);
    if (answer.code >= 200 && answer.code < 300) return task.resolve(undefined);
    task.reject(Object.assign(new Error(answer.message), { code: answer.code }));
  });
