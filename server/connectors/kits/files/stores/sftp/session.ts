import type { AnyAuthMethod, Client, FileEntryWithStats, SFTPWrapper, Stats } from 'ssh2';
import {
  AuthenticationError,
  ConfigurationError,
  ConnectorError,
  RetryableError,
} from '../../../../contract/errors.ts';
import type { ConnectorContext } from '../../../../contract/connector.ts';
import { recordedOpening } from '../../../../contract/recorded-opening.ts';
import { timeoutError } from '../../../rest/failures.ts';
import { sshLogin, type SshSession } from '../../../ssh/login.ts';
import type { SftpLocation } from '../../settings/sftp.ts';
import { reachError } from '../folders/reach-error.ts';
import type { PooledSession } from '../folders/session-pool.ts';

export type SftpContext = Pick<ConnectorContext<SftpLocation>, 'config' | 'connect' | 'recorder' | 'signal'>;

/** Drivers give a result whenever they give no error. */
type Done<Result> = (error: Error | null | undefined, result: Result) => void;

/** SSH_FXP_STATUS. */
const NO_SUCH_FILE = 2;
const PERMISSION_DENIED = 3;
const UNSUPPORTED = 8;
/** What the driver throws for an extension that the server has not announced. */
const NOT_ANNOUNCED = 'Server does not support this extended request';

/** One login at an SFTP server. */
export class SftpSession implements PooledSession {
  #open = true;
  /** Of a request that begins after the end of the connection, the driver never calls back. */
  readonly #lost = new AbortController();

  private constructor(
    private readonly ctx: SftpContext,
    private readonly client: Client,
    private readonly sftp: SFTPWrapper,
    /** `SHA256:…` of the key that the server presented. */
    readonly host_key: string,
  ) {
    client.on('close', () => {
      this.#open = false;
      this.#lost.abort(new Error('The connection was lost'));
    });
  }

  /** @throws ConnectorError, or the reason of the signal */
  static async open(ctx: SftpContext): Promise<SftpSession> {
    const server = serverOf(ctx);
    const about = { url: `sftp://${server}`, shown: ({ host_key }: SftpSession) => `host key ${host_key}` };
    return recordedOpening(ctx.recorder, about, async () => {
      const { client, presented } = await login(ctx, server);
      return new SftpSession(ctx, client, await subsystem(client, ctx, server), presented);
    });
  }

  get open(): boolean {
    return this.#open;
  }

  close(): void {
    this.#open = false;
    this.client.end();
    this.client.destroy();
  }

  list = (path: string) => this.#call<FileEntryWithStats[]>(path, (done) => this.sftp.readdir(path, done));
  /** Follows links. */
  stat = (path: string) => this.#call<Stats>(path, (done) => this.sftp.stat(path, done));
  openFile = (path: string) => this.#call<Buffer>(path, (done) => this.sftp.open(path, 'r', done));
  statOpen = (path: string, handle: Buffer) => this.#call<Stats>(path, (done) => this.sftp.fstat(handle, done));
  closeFile = (path: string, handle: Buffer) =>
    this.#call<undefined>(path, (done) => this.sftp.close(handle, (error) => done(error, undefined)));
  /** @returns the number of bytes that were read: 0 at the end of the file, and any other number can be too small */
  read = (path: string, handle: Buffer, into: Buffer, position: number) =>
    this.#call<number>(path, (done) => this.sftp.read(handle, into, 0, into.length, position, done));

  /** @param flags `wx`: fails if the file exists. `w`: empties it */
  openNew = (path: string, flags: 'w' | 'wx') =>
    this.#change<Buffer>(path, (done) => this.sftp.open(path, flags, done));
  write = (path: string, handle: Buffer, part: Buffer, position: number) =>
    this.#change<undefined>(path, (done) =>
      this.sftp.write(handle, part, 0, part.length, position, (error) => done(error, undefined)),
    );
  /** Forces what was written to the disk. @throws ConfigurationError `sftp_not_offered` */
  sync = (path: string, handle: Buffer) =>
    this.#change<undefined>(path, (done) => this.sftp.ext_openssh_fsync(handle, (error) => done(error, undefined)));
  /** Fails if `to` exists, as the protocol demands. */
  rename = (from: string, to: string) =>
    this.#change<undefined>(to, (done) => this.sftp.rename(from, to, (error) => done(error, undefined)));
  /** Replaces `to` in one step. @throws ConfigurationError `sftp_not_offered` */
  replace = (from: string, to: string) =>
    this.#change<undefined>(to, (done) => this.sftp.ext_openssh_rename(from, to, (error) => done(error, undefined)));
  remove = (path: string) =>
    this.#change<undefined>(path, (done) => this.sftp.unlink(path, (error) => done(error, undefined)));
  makeFolder = (path: string) =>
    this.#change<undefined>(path, (done) => this.sftp.mkdir(path, (error) => done(error, undefined)));

  #change = <Result>(path: string, begin: (done: Done<Result>) => void) => this.#call(path, begin, 'write');

  async #call<Result>(
    path: string,
    begin: (done: Done<Result>) => void,
    right: 'read' | 'write' = 'read',
  ): Promise<Result> {
    const { signal, config } = this.ctx;
    signal.throwIfAborted();
    try {
      this.#lost.signal.throwIfAborted();
      const signals = [signal, this.#lost.signal];
      return await limited(begin, { signals, seconds: config.timeout_seconds, server: serverOf(this.ctx) });
    } catch (error) {
      signal.throwIfAborted();
      throw this.#explained(error, path, right);
    }
  }

  #explained(error: unknown, path: string, right: 'read' | 'write'): ConnectorError {
    if (error instanceof ConnectorError) return error;
    const { code, message } = error as Error & { code?: number };
    const options = { cause: error };
    if (code === UNSUPPORTED || message === NOT_ANNOUNCED) {
      return new ConfigurationError('sftp_not_offered', `${serverOf(this.ctx)} lacks a request for "${path}"`, options);
    }
    if (code === NO_SUCH_FILE) {
      return new ConfigurationError('file_not_found', `"${path}" not found on ${serverOf(this.ctx)}`, options);
    }
    if (code === PERMISSION_DENIED) {
      const { username } = this.ctx.config;
      const text = `"${path}" on ${serverOf(this.ctx)}: the user ${username} has no permission to ${right} it`;
      return new ConfigurationError('file_forbidden', text, options);
    }
    if (typeof code === 'number') {
      const advice = right === 'write' ? '. Check free space and quotas' : '';
      const text = `"${path}" on ${serverOf(this.ctx)}: the server failed to ${right} it (${message})${advice}`;
      return new RetryableError('file_error', text, options);
    }
    return new RetryableError('connection_failed', `"${path}" on ${serverOf(this.ctx)}: ${message}`, options);
  }
}

const DEFAULT_PORT = 22;

const serverOf = ({ config }: Pick<SftpContext, 'config'>) => `${config.host}:${config.port ?? DEFAULT_PORT}`;

/** Waits for a callback, but no longer than `seconds` and not after an abort. */
function limited<Result>(
  begin: (done: Done<Result>) => void,
  { signals, seconds, server }: { signals: readonly AbortSignal[]; seconds: number; server: string },
): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  const timer = setTimeout(() => reject(timeoutError(server, seconds)), seconds * 1000);
  const abort = ({ target }: Event) => reject((target as AbortSignal).reason);
  for (const signal of signals) signal.addEventListener('abort', abort, { once: true });
  try {
    begin((error, result) => (error ? reject(error) : resolve(result)));
  } catch (error) {
    reject(error);
  }
  return promise.finally(() => {
    clearTimeout(timer);
    for (const signal of signals) signal.removeEventListener('abort', abort);
  });
}

async function login(ctx: SftpContext, server: string): Promise<SshSession> {
  const { config, signal } = ctx;
  const methods = authMethods(config);
  const timeout_ms = config.timeout_seconds * 1000;
  const deadline = performance.now() + timeout_ms;
  const { host = '', port = DEFAULT_PORT, host_key_fingerprint: known } = config;
  const socket = await ctx.connect({ host, port, phase: 'run', timeout_ms }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw reachError(error, { host, port });
  });
  return sshLogin(socket, {
    server,
    username: config.username,
    methods,
    host_key_fingerprint: known ?? null,
    timeout_ms: deadline - performance.now(),
    signal,
    hostKeyError: (presented) =>
      new ConfigurationError(
        'ssh_host_key_changed',
        `The host key of ${server} is ${presented}, expected ${known}. It may be a different server. If the change is ` +
          'expected, set host_key_fingerprint to the new key',
      ),
    advice: 'Check the username and the password or private key',
  });
}

/** @throws AuthenticationError if the private key cannot be used */
function authMethods({ username, password, private_key, passphrase }: SftpLocation): AnyAuthMethod[] {
  const methods: AnyAuthMethod[] = [];
  if (private_key) {
    const { utils } = require('ssh2') as typeof import('ssh2');
    const key = utils.parseKey(private_key, passphrase);
    if (key instanceof Error) {
      throw new AuthenticationError('ssh_key_invalid', `The private key cannot be used: ${key.message}`);
    }
    methods.push({ type: 'publickey', username, key });
  }
  if (password === undefined) return methods;
  const answer: Extract<AnyAuthMethod, { type: 'keyboard-interactive' }>['prompt'] = (...[, , , prompts, finish]) =>
    finish(prompts.map(() => password));
  methods.push({ type: 'password', username, password });
  return [...methods, { type: 'keyboard-interactive', username, prompt: answer }];
}

async function subsystem(client: Client, ctx: SftpContext, server: string): Promise<SFTPWrapper> {
  try {
    const { timeout_seconds: seconds } = ctx.config;
    return await limited<SFTPWrapper>((done) => void client.sftp(done), { signals: [ctx.signal], seconds, server });
  } catch (error) {
    client.destroy();
    ctx.signal.throwIfAborted();
    if (error instanceof ConnectorError) throw error;
    throw new ConfigurationError(
      'sftp_not_supported',
      `${server} accepts the login, but does not offer SFTP. Enable it on the server for this user`,
      { cause: error },
    );
  }
}
