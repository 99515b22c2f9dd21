import type { DriverConnection } from './copy-out.ts';

const COPY_DATA = 0x64;
const COPY_DONE = Buffer.from([0x63, 0, 0, 0, 4]);

/** COPY … FROM STDIN. Each piece becomes one message. It may begin and end inside a row. */
export class CopyIn {
  #connection: DriverConnection | null = null;
  #started = Promise.withResolvers<void>();
  #finished = Promise.withResolvers<void>();
  #failed: { error: unknown } | null = null;
  #rows = 0;
  #bytes = 0;
  #drained: (() => void) | null = null;
  #ending = false;

  constructor(
    private readonly text: string,
    private readonly onEnd: (error: unknown) => void,
  ) {
    // The next write gets the error. Until then it must not count as unhandled.
    this.#started.promise.catch(() => {});
    this.#finished.promise.catch(() => {});
  }

  bytes(): number {
    return this.#bytes;
  }

  waits(): boolean {
    return this.#connection === null || this.#drained !== null || this.#ending;
  }

  /**
   * Resolves when the server accepts more data. Throws the server's error once there is one.
   * @returns whether the piece was sent, so that its memory can be used again
   */
  async write(piece: Uint8Array): Promise<boolean> {
    if (!this.#connection) await this.#started.promise;
    this.#check();
    const socket = this.#connection!.stream;
    const header = Buffer.allocUnsafe(5);
    header[0] = COPY_DATA;
    header.writeInt32BE(piece.length + 4, 1);
    this.#bytes += piece.length;
    socket.write(header);
    if (socket.write(piece)) return socket.writableLength === 0;
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
      socket.once('drain', resolve);
    });
    this.#drained = null;
    this.#check();
    return true;
  }

  #check() {
    if (this.#failed) throw this.#failed.error;
  }

  /** Ends the COPY. @returns the number of rows copied. */
  async end(): Promise<number> {
    await this.#started.promise;
    this.#check();
    this.#ending = true;
    this.#connection!.stream.write(COPY_DONE);
    await this.#finished.promise;
    return this.#rows;
  }

  submit(connection: DriverConnection): void {
    connection.query(this.text);
  }

  handleCopyInResponse(connection: DriverConnection): void {
    this.#connection = connection;
    this.#started.resolve();
  }

  handleCommandComplete(message: { text: string }): void {
    const count = /^COPY (\d+)/.exec(message.text);
    if (count) this.#rows = Number(count[1]);
  }

  handleReadyForQuery(): void {
    if (this.#failed) return;
    this.onEnd(null);
    this.#finished.resolve();
  }

  handleError(error: unknown): void {
    if (this.#failed) return;
    this.#failed = { error };
    this.onEnd(error);
    this.#started.reject(error);
    this.#finished.reject(error);
    this.#drained?.();
  }
}
