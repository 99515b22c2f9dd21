import { createHash } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { Client, type ClientChannel, type PublicKeyAuthMethod } from 'ssh2';
import {
  AuthenticationError,
  ConfigurationError,
  ConnectorError,
  RetryableError,
  TimeoutError,
} from '../connectors/contract/errors.ts';

export interface TunnelSettings {
  host: string;
  port: number;
  username: string;
  /** OpenSSH's format. Never leaves the process. */
  private_key: string;
  /** `SHA256:…` of the only host key that is taken; null: any one, which is then told. */
  host_key_fingerprint: string | null;
}

/** As in connectors/connecting.ts. */
export interface TunnelOptions {
  phase: 'setup' | 'run';
  timeout_ms: number;
  signal: AbortSignal;
}

/** Nothing goes through until somebody says that the server's new key is right. */
export class HostKeyChangedError extends ConfigurationError {
  /** @param shown `SHA256:…` of the key that was not taken. */
  constructor(
    readonly shown: string,
    message: string,
  ) {
    super('ssh_host_key_changed', message);
  }
}

const KEEPALIVE_MS = 10_000;
const KEEPALIVES_MISSED = 3;
/** How long connections that go through have for their good-byes, and the other side for ours. */
const GRACE_MS = 1_500;
const FAREWELL_MS = 500;
/** Reasons of SSH_MSG_CHANNEL_OPEN_FAILURE, RFC 4254. */
const PROHIBITED = 1;
const CONNECT_FAILED = 2;

/** A login at an SSH server, through which any number of connections go. */
export class SshTunnel {
  #open = true;
  #opening = 0;
  readonly #channels = new Set<ClientChannel>();
  #emptied: (() => void) | null = null;

  private constructor(
    private readonly client: Client,
    private readonly socket: Duplex,
    private readonly server: string,
    /** Of the key that the server showed. */
    readonly host_key_fingerprint: string,
  ) {
    client.on('close', () => {
      this.#open = false;
    });
  }

  /** Logs in over `socket`, which is the tunnel's from here on. @throws ConnectorError, the signal's reason */
  static async open(settings: TunnelSettings, socket: Duplex, options: TunnelOptions): Promise<SshTunnel> {
    const server = `${settings.host}:${settings.port}`;
    const { host_key_fingerprint: known } = settings;
    const client = new Client();
    const { username, private_key } = settings;
    const login: PublicKeyAuthMethod = { type: 'publickey', username, key: private_key };
    let shown = '';
    // Stays: an error that nobody listens to ends the process.
    client.on('error', () => {});
    const ready = new Promise<void>((resolve, reject) => {
      client.once('ready', resolve).once('error', reject);
      client.once('close', () => reject(new Error('the server hung up')));
    });
    const abort = () => client.destroy();
    options.signal.addEventListener('abort', abort, { once: true });
    try {
      client.connect({
        sock: socket,
        username,
        authHandler: [login],
        hostVerifier: (key: Buffer) => {
          shown = fingerprintOf(key);
          return known === null || shown === known;
        },
        readyTimeout: Math.max(1, options.timeout_ms),
        keepaliveInterval: KEEPALIVE_MS,
        keepaliveCountMax: KEEPALIVES_MISSED,
      });
      await ready;
      return new SshTunnel(client, socket, server, shown);
    } catch (error) {
      client.destroy();
      options.signal.throwIfAborted();
      throw loginError(error as Error, { server, shown, known });
    } finally {
      options.signal.removeEventListener('abort', abort);
    }
  }

  get open(): boolean {
    return this.#open;
  }

  /** A connection from the SSH server to `host:port`. The caller listens to its errors. @throws ConnectorError */
  async forward(to: { host: string; port: number }, options: TunnelOptions): Promise<Duplex> {
    const { phase, timeout_ms, signal } = options;
    const answered = Promise.withResolvers<ClientChannel>();
    const late = () =>
      answered.reject(new TimeoutError('connection_timeout', `${this.#to(to)} did not answer in time`));
    const aborted = () => answered.reject(signal.reason);
    const timer = setTimeout(late, Math.max(1, timeout_ms));
    signal.addEventListener('abort', aborted, { once: true });
    let left = false;
    this.#opening++;
    try {
      this.client.forwardOut('127.0.0.1', 0, to.host, to.port, (error, channel) => {
        this.#opening--;
        if (channel) this.#keep(channel, left);
        if (error) answered.reject(forwardError(error, { place: this.#to(to), phase }));
        else answered.resolve(channel);
        this.#left();
      });
      return await answered.promise;
    } catch (error) {
      left = true;
      throw error instanceof ConnectorError || signal.aborted ? error : this.#lost();
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', aborted);
    }
  }

  /** Waits a moment for the connections that go through to end, then ends the login and whatever is left. */
  async close(): Promise<void> {
    if (this.#open && (this.#channels.size > 0 || this.#opening > 0)) {
      await withinTime(GRACE_MS, (done) => {
        this.#emptied = done;
      });
    }
    if (this.#open) {
      await withinTime(FAREWELL_MS, (done) => {
        this.client.once('close', done);
        this.client.end();
      });
    }
    this.#open = false;
    this.client.destroy();
    this.socket.destroy();
  }

  #keep(channel: ClientChannel, unwanted: boolean) {
    this.#channels.add(channel);
    channel.on('error', () => {});
    // As sockets do: else a connection that the other side ended would stay half open.
    channel.once('end', () => channel.end());
    channel.stderr.on('error', () => {});
    channel.once('close', () => {
      this.#channels.delete(channel);
      this.#left();
    });
    if (unwanted) channel.destroy();
  }

  #left() {
    if (this.#channels.size === 0 && this.#opening === 0) this.#emptied?.();
  }

  #to = ({ host, port }: { host: string; port: number }) => `${host}:${port} from the SSH server ${this.server}`;

  #lost = () => new RetryableError('ssh_connection_lost', `The connection to the SSH server ${this.server} broke`);
}

const fingerprintOf = (key: Buffer) => `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;

function withinTime(ms: number, begin: (done: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    begin(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function loginError(
  error: Error & { level?: string },
  { server, shown, known }: { server: string; shown: string; known: string | null },
): ConnectorError {
  if (known !== null && shown !== '' && shown !== known) {
    return new HostKeyChangedError(
      shown,
      `The SSH server ${server} shows the host key ${shown} and not ${known}. It may be another server. ` +
        'If the change is right, set ssh_tunnel.host_key_fingerprint to the new one, or to null to take what it shows',
    );
  }
  if (error.level === 'client-authentication') {
    return new AuthenticationError('ssh_login_refused', `The SSH server ${server} refuses the user or the key`);
  }
  if (error.level === 'client-timeout') {
    return new TimeoutError('ssh_timeout', `The SSH server ${server} did not answer in time`);
  }
  if (error.level === 'handshake' && /no matching/i.test(error.message)) {
    return new ConfigurationError('ssh_not_compatible', `${server}: ${error.message}`);
  }
  return new RetryableError('ssh_connection_lost', `The SSH server ${server} broke off: ${error.message}`);
}

function forwardError(
  error: Error & { reason?: number | string },
  { place, phase }: { place: string; phase: TunnelOptions['phase'] },
): Error {
  if (error.reason === PROHIBITED) {
    return new ConfigurationError('ssh_forward_refused', `The SSH server does not let connections through to ${place}`);
  }
  if (error.reason === CONNECT_FAILED) {
    const refused = phase === 'run' ? RetryableError : ConfigurationError;
    return new refused('connection_refused', `Cannot reach ${place}: ${error.message.replace(/^.*failure: /, '')}`);
  }
  return error;
}
