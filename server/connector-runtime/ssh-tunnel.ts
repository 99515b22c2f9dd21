import type { Duplex } from 'node:stream';
import type { Client, ClientChannel } from 'ssh2';
import { ConfigurationError, ConnectorError, RetryableError, TimeoutError } from '../connectors/contract/errors.ts';
import { sshLogin } from '../connectors/kits/ssh/login.ts';

export interface TunnelSettings {
  host: string;
  port: number;
  username: string;
  /** OpenSSH's format. Never leaves the process. */
  private_key: string;
  /** `SHA256:…` of the only host key to accept. Null accepts any key. */
  host_key_fingerprint: string | null;
}

/** See ConnectTarget. */
export interface TunnelOptions {
  phase: 'setup' | 'run';
  timeout_ms: number;
  signal: AbortSignal;
}

/** The server's host key is not the known one. Connections fail until a user confirms the new key. */
export class HostKeyChangedError extends ConfigurationError {
  /** @param presented `SHA256:…` of the rejected key. */
  constructor(
    readonly presented: string,
    message: string,
  ) {
    super('ssh_host_key_changed', message);
  }
}

/** Time on close for forwarded connections to end, then for the server to acknowledge the disconnect. */
const DRAIN_MS = 1_500;
const DISCONNECT_MS = 500;
/** Reasons of SSH_MSG_CHANNEL_OPEN_FAILURE, RFC 4254. */
const PROHIBITED = 1;
const CONNECT_FAILED = 2;

/** One SSH session that forwards any number of connections. */
export class SshTunnel {
  #open = true;
  #opening = 0;
  readonly #channels = new Set<ClientChannel>();
  #onIdle: (() => void) | null = null;

  private constructor(
    private readonly client: Client,
    private readonly socket: Duplex,
    private readonly server: string,
    /** `SHA256:…` of the key that the server presented. */
    readonly host_key_fingerprint: string,
  ) {
    client.on('close', () => {
      this.#open = false;
    });
  }

  /** Logs in over `socket` and takes ownership of it. @throws ConnectorError, or the signal's reason */
  static async open(settings: TunnelSettings, socket: Duplex, options: TunnelOptions): Promise<SshTunnel> {
    const server = `${settings.host}:${settings.port}`;
    const { host_key_fingerprint: known } = settings;
    const { username, private_key } = settings;
    const { client, presented } = await sshLogin(socket, {
      server,
      username,
      methods: [{ type: 'publickey', username, key: private_key }],
      host_key_fingerprint: known,
      timeout_ms: options.timeout_ms,
      signal: options.signal,
      hostKeyError: (found) =>
        new HostKeyChangedError(
          found,
          `The host key of the SSH server ${server} is ${found}, expected ${known}. It may be a different server. ` +
            'If the change is expected, set ssh_tunnel.host_key_fingerprint to the new key, or to null to accept any key',
        ),
      advice: 'Check the username and authorize the public key on the server',
    });
    return new SshTunnel(client, socket, server, presented);
  }

  get open(): boolean {
    return this.#open;
  }

  /** Opens a connection from the SSH server to `host:port`. The caller handles its errors. @throws ConnectorError */
  async forward(to: { host: string; port: number }, options: TunnelOptions): Promise<Duplex> {
    const { phase, timeout_ms, signal } = options;
    const answered = Promise.withResolvers<ClientChannel>();
    const timedOut = () =>
      answered.reject(new TimeoutError('connection_timeout', `${this.#route(to)} did not answer in time`));
    const aborted = () => answered.reject(signal.reason);
    const timer = setTimeout(timedOut, Math.max(1, timeout_ms));
    signal.addEventListener('abort', aborted, { once: true });
    let abandoned = false;
    this.#opening++;
    try {
      this.client.forwardOut('127.0.0.1', 0, to.host, to.port, (error, channel) => {
        this.#opening--;
        if (channel) this.#track(channel, abandoned);
        if (error) answered.reject(forwardError(error, { route: this.#route(to), phase }));
        else answered.resolve(channel);
        this.#checkIdle();
      });
      return await answered.promise;
    } catch (error) {
      abandoned = true;
      throw error instanceof ConnectorError || signal.aborted ? error : this.#lost();
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', aborted);
    }
  }

  /** Gives forwarded connections a moment to end, then disconnects and destroys the rest. */
  async close(): Promise<void> {
    if (this.#open && (this.#channels.size > 0 || this.#opening > 0)) {
      await withinTime(DRAIN_MS, (done) => {
        this.#onIdle = done;
      });
    }
    if (this.#open) {
      await withinTime(DISCONNECT_MS, (done) => {
        this.client.once('close', done);
        this.client.end();
      });
    }
    this.#open = false;
    this.client.destroy();
    this.socket.destroy();
  }

  #track(channel: ClientChannel, abandoned: boolean) {
    this.#channels.add(channel);
    channel.on('error', () => {});
    // As sockets do by default: otherwise a connection that the server ends stays half open.
    channel.once('end', () => channel.end());
    channel.stderr.on('error', () => {});
    channel.once('close', () => {
      this.#channels.delete(channel);
      this.#checkIdle();
    });
    if (abandoned) channel.destroy();
  }

  #checkIdle() {
    if (this.#channels.size === 0 && this.#opening === 0) this.#onIdle?.();
  }

  #route = ({ host, port }: { host: string; port: number }) => `${host}:${port} from the SSH server ${this.server}`;

  #lost = () => new RetryableError('ssh_connection_lost', `The connection to the SSH server ${this.server} was lost`);
}

function withinTime(ms: number, begin: (done: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    begin(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function forwardError(
  error: Error & { reason?: number | string },
  { route, phase }: { route: string; phase: TunnelOptions['phase'] },
): Error {
  if (error.reason === PROHIBITED) {
    return new ConfigurationError(
      'ssh_forward_refused',
      `Port forwarding to ${route} is not permitted. Allow TCP forwarding on the server`,
    );
  }
  if (error.reason === CONNECT_FAILED) {
    const ErrorClass = phase === 'run' ? RetryableError : ConfigurationError;
    return new ErrorClass('connection_refused', `Cannot reach ${route}: ${error.message.replace(/^.*failure: /, '')}`);
  }
  return error;
}
