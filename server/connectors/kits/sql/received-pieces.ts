/** The socket pauses while more than this many bytes wait to be read. */
const HIGH_WATER = 1024 * 1024;

interface PausableSocket {
  pause(): void;
  resume(): void;
}

interface Options<Piece> {
  sizeOf(piece: Piece): number;
  /** Called once, before the reader learns of it. */
  onEnd(error: Error | null): void;
  /** The reader has stopped before the end. */
  abandon(): void;
}

/** Pieces of a result from a server's socket to one reader, who decides how fast they come. */
export class ReceivedPieces<Piece> implements AsyncIterable<Piece> {
  /** Of all pieces that have arrived. */
  bytes = 0;
  readonly #queue: Piece[] = [];
  #queued = 0;
  #socket: PausableSocket | null = null;
  #isPaused = false;
  #ended: { error: Error | null } | null = null;
  #wake: (() => void) | null = null;

  constructor(private readonly options: Options<Piece>) {}

  /** A piece that waits to be read is this process's next step. */
  get isAwaited(): boolean {
    return this.#queue.length === 0 && !this.#ended;
  }

  comeFrom(socket: PausableSocket): void {
    this.#socket = socket;
  }

  push(piece: Piece): void {
    const size = this.options.sizeOf(piece);
    this.#queue.push(piece);
    this.bytes += size;
    this.#queued += size;
    if (this.#queued >= HIGH_WATER && !this.#isPaused) {
      this.#isPaused = true;
      this.#socket?.pause();
    }
    this.#wake?.();
  }

  /** Null: all pieces have arrived. An error is thrown at once, whatever waits. Only the first end counts. */
  end(error: Error | null): void {
    if (this.#ended) return;
    this.#ended = { error };
    this.options.onEnd(error);
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Piece> {
    try {
      for (;;) {
        if (this.#ended?.error) throw this.#ended.error;
        const piece = this.#queue.shift();
        if (piece) {
          this.#read(piece);
          yield piece;
        } else if (this.#ended) return;
        else await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      if (!this.#ended) this.options.abandon();
    }
  }

  #read(piece: Piece): void {
    this.#queued -= this.options.sizeOf(piece);
    if (this.#queued >= HIGH_WATER || !this.#isPaused) return;
    this.#isPaused = false;
    this.#socket?.resume();
  }
}
