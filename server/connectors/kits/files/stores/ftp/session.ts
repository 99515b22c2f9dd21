import { PassThrough } from 'node:stream';
import type { Client, FileInfo } from 'basic-ftp';
import { ConfigurationError, type ConnectorError } from '../../../../contract/errors.ts';
import { recordedOpening } from '../../../../contract/recorded-opening.ts';
import type { PooledSession } from '../folders/session-pool.ts';
import { commandError, replyOf } from './failures.ts';
import { type FtpContext, logIn, serverOf } from './login.ts';

const BLOCK_BYTES = 256 << 10;
const MICROS = 1000;
/** Replies to commands that a server does not know. */
const UNKNOWN_COMMAND = new Set([500, 501, 502, 504]);

/** Size in bytes and time of the last change in microseconds since 1970; null if the server does not report it. */
export interface FileAbout {
  size: number | null;
  modified: number | null;
}

/** One login at an FTP server. It does one thing at a time. */
export class FtpSession implements PooledSession {
  #open = true;

  private constructor(
    private readonly ctx: FtpContext,
    private readonly client: Client,
    /** Such as `TLSv1.3`; null without encryption. */
    readonly protocol: string | null,
  ) {}

  /** @throws ConnectorError, or the reason of the signal */
  static async open(ctx: FtpContext): Promise<FtpSession> {
    const { client, protocol } = await recordedOpening(
      ctx.recorder,
      { url: `ftp://${serverOf(ctx)}`, shown: (login) => login.protocol ?? 'not encrypted' },
      () => logIn(ctx),
    );
    return new FtpSession(ctx, client, protocol);
  }

  get open(): boolean {
    return this.#open;
  }

  close(): void {
    this.#open = false;
    this.client.close();
  }

  /** The entries of a folder; links are not followed. `path`: empty for the folder of the login. */
  list = (path: string): Promise<FileInfo[]> => this.#call(path || '.', () => this.client.list(plain(path)));

  /** @throws ConfigurationError `file_not_found`, also for a folder */
  about = (path: string): Promise<FileAbout> =>
    this.#call(path, async () => {
      const size = await this.client.size(plain(path)).catch(unknown);
      const modified = await this.client.lastMod(plain(path)).catch(unknown);
      const time = modified?.getTime() ?? Number.NaN;
      return { size, modified: Number.isNaN(time) ? null : time * MICROS };
    });

  /** The bytes of a file that start at `from`. Leaving the loop before the end closes the session. */
  async *download(path: string, from: number): AsyncGenerator<Buffer> {
    const pipe = new PassThrough({ highWaterMark: BLOCK_BYTES });
    const done = this.#call(path, () => this.client.downloadTo(pipe, plain(path), from));
    done.catch((error: Error) => pipe.destroy(error));
    let whole = false;
    try {
      yield* pipe as AsyncIterable<Buffer>;
      await done;
      whole = true;
    } finally {
      if (!whole) this.close();
    }
  }

  async #call<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
    const { signal } = this.ctx;
    signal.throwIfAborted();
    if (/[\r\n\0]/.test(path)) {
      throw new ConfigurationError('path_invalid', `The path ${JSON.stringify(path)} contains a line end or NUL`);
    }
    const stop = () => this.close();
    signal.addEventListener('abort', stop, { once: true });
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw this.#explained(error, path);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  #explained(error: unknown, path: string): ConnectorError {
    // After any other error the replies and the commands may no longer belong together.
    if (replyOf(error) === null) this.close();
    return commandError(error, { server: serverOf(this.ctx), path });
  }
}

/** A path that starts with a hyphen would be read as options. */
const plain = (path: string) => (path.startsWith('-') ? `./${path}` : path);

function unknown(error: unknown): null {
  if (UNKNOWN_COMMAND.has(replyOf(error)?.code ?? 0)) return null;
  throw error;
}
