/** So much that the next slice is decoded while it is applied, which takes about as long. */
const AHEAD_BYTES = 8 * 1024 * 1024;

/** Reads pieces before they are asked for. */
export class ReadAhead {
  readonly #waiting: Buffer[] = [];
  #bytes = 0;
  #ended = false;
  #discards = false;
  #failed: { error: unknown } | null = null;
  #changed = Promise.withResolvers<void>();
  #filled: Promise<void> = Promise.resolve();

  fill(pieces: AsyncIterable<Buffer>): void {
    this.#filled = this.#fill(pieces);
  }

  /** Everything has been read and taken. */
  get isAtEnd(): boolean {
    return this.#ended && this.#waiting.length === 0;
  }

  /** Null: the end, or `until` is aborted and nothing is there. */
  async next(until?: AbortSignal): Promise<Buffer | null> {
    await this.#untilReady(until);
    const piece = this.#waiting.shift();
    if (piece) {
      this.#bytes -= piece.length;
      this.#wake();
      return piece;
    }
    if (this.#failed) throw this.#failed.error;
    return null;
  }

  async #untilReady(until?: AbortSignal): Promise<void> {
    const wake = () => this.#wake();
    const waits = () => this.#waiting.length === 0 && !this.#ended && !until?.aborted;
    until?.addEventListener('abort', wake);
    while (waits()) await this.#changed.promise;
    until?.removeEventListener('abort', wake);
  }

  /** Reads the rest, which is not for anyone. */
  async discard(): Promise<void> {
    this.#discards = true;
    this.#wake();
    await this.#filled;
    if (this.#failed) throw this.#failed.error;
  }

  async #fill(pieces: AsyncIterable<Buffer>): Promise<void> {
    try {
      for await (const piece of pieces) {
        if (this.#discards) continue;
        this.#waiting.push(piece);
        this.#bytes += piece.length;
        this.#wake();
        while (this.#bytes >= AHEAD_BYTES && !this.#discards) await this.#changed.promise;
      }
    } catch (error) {
      this.#failed = { error };
    } finally {
      this.#ended = true;
      this.#wake();
    }
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
