import { createHash } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { AnyAuthMethod, Client } from 'ssh2';
import {
  AuthenticationError,
  ConfigurationError,
  type ConnectorError,
  RetryableError,
  TimeoutError,
} from '../../contract/errors.ts';

export interface SshLogin {
  /** `host:port`, as messages show it. */
  server: string;
  username: string;
  /** Tried in this order. */
  methods: AnyAuthMethod[];
  /** `SHA256:…` of the only host key to accept. Null accepts any key. */
  host_key_fingerprint: string | null;
  timeout_ms: number;
  signal: AbortSignal;
  /** The error for a host key that is not the known one. */
  hostKeyError(presented: string): ConnectorError;
  /** What to do about a rejected login. */
  advice: string;
}

/** An SSH session, and `SHA256:…` of the host key that the server presented. */
export interface SshSession {
  client: Client;
  presented: string;
}

const KEEPALIVE_MS = 10_000;
const KEEPALIVES_MISSED = 3;

/** Logs in over `socket` and takes ownership of it. @throws ConnectorError, or the signal's reason */
export async function sshLogin(socket: Duplex, login: SshLogin): Promise<SshSession> {
  const { host_key_fingerprint: known, signal } = login;
  // Loaded with its first use: processes start often, and most never need it.
  const ssh2 = require('ssh2') as typeof import('ssh2');
  const client = new ssh2.Client();
  let presented = '';
  // This listener stays: an `error` event without a listener ends the process.
  client.on('error', () => {});
  const ready = new Promise<void>((resolve, reject) => {
    client.once('ready', resolve).once('error', reject);
    client.once('close', () => reject(new Error('the server closed the connection')));
  });
  const abort = () => client.destroy();
  signal.addEventListener('abort', abort, { once: true });
  try {
    client.connect({
      sock: socket,
      username: login.username,
      authHandler: login.methods,
      hostVerifier: (key: Buffer) => {
        presented = fingerprintOf(key);
        return known === null || presented === known;
      },
      readyTimeout: Math.max(1, login.timeout_ms),
      keepaliveInterval: KEEPALIVE_MS,
      keepaliveCountMax: KEEPALIVES_MISSED,
    });
    await ready;
    return { client, presented };
  } catch (error) {
    client.destroy();
    signal.throwIfAborted();
    if (known !== null && presented !== '' && presented !== known) throw login.hostKeyError(presented);
    throw loginError(error as Error, login);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

const fingerprintOf = (key: Buffer) => `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;

function loginError(error: Error & { level?: string }, { server, advice }: SshLogin): ConnectorError {
  if (error.level === 'client-authentication') {
    return new AuthenticationError('ssh_login_refused', `The SSH server ${server} rejected the login. ${advice}`);
  }
  if (error.level === 'client-timeout') {
    return new TimeoutError('ssh_timeout', `The SSH server ${server} did not answer in time`);
  }
  if (error.level === 'handshake' && /no matching/i.test(error.message)) {
    return new ConfigurationError('ssh_not_compatible', `${server}: ${error.message}`);
  }
  return new RetryableError(
    'ssh_connection_lost',
    `The connection to the SSH server ${server} was lost: ${error.message}`,
  );
}
