import type { Piece } from '../connection/copy-out.ts';

/** Bytes of rows and the end of the last complete row in them, 0 if no row ends in them. */
export type Rows = Pick<Piece, 'bytes' | 'rows_end'>;

type Reader = AsyncIterator<Piece>;
type Arrival = { from: Reader } & ({ result: IteratorResult<Piece> } | { error: unknown });

/**
 * Merges several streams of rows into one, in order of arrival, without splitting a row. Memory is bounded by the
 * buffers of the streams and one partial row of each. Throws the first error. After an error or an early exit, the
 * caller has to end the streams.
 */
export class Interleaved implements AsyncIterable<Rows> {
  readonly #arrived: Arrival[] = [];
  #open = 0;
  #wake = () => {};
  #waited = 0;
  #waitingSince: number | null = null;

  /** Also allowed during iteration, while another stream is still open. */
  add(stream: AsyncIterable<Piece>): void {
    this.#open += 1;
    this.#request(stream[Symbol.asyncIterator]());
  }

  /** Milliseconds spent waiting for rows. The rest of the time, rows waited for the consumer. */
  waited(): number {
    return this.#waited + (this.#waitingSince === null ? 0 : performance.now() - this.#waitingSince);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Rows> {
    /** The partial row of each reader. */
    const begun = new Map<Reader, Buffer>();
    /** The reader whose row has been yielded in part, so that the rest has to follow. */
    let within: Reader | null = null;
    while (this.#open > 0) {
      const { from, result } = await this.#next(within);
      if (result.done) {
        this.#open -= 1;
        continue;
      }
      this.#request(from);
      const { bytes, rows_end } = result.value;
      const start = begun.get(from);
      begun.delete(from);
      // The last reader need not wait for whole rows. A row larger than a piece is not buffered.
      const end: number = this.#open === 1 || rows_end === 0 ? bytes.length : rows_end;
      within = end === rows_end ? null : from;
      // A copy, so that the memory of the piece can be given back.
      if (end < bytes.length) begun.set(from, Buffer.from(bytes.subarray(end)));
      const rows = bytes.subarray(0, end);
      if (start) yield { bytes: start, rows_end: 0 };
      yield { bytes: rows, rows_end };
    }
  }

  /** Not Promise.race over all readers, which would pile up reactions on a slow one. */
  #request(from: Reader): void {
    const arrive = (arrival: Arrival) => {
      this.#arrived.push(arrival);
      this.#wake();
    };
    from.next().then(
      (result) => arrive({ from, result }),
      (error: unknown) => arrive({ from, error }),
    );
  }

  /** The first arrival, only from `only` if given. Throws the error of any reader at once. */
  async #next(only: Reader | null): Promise<{ from: Reader; result: IteratorResult<Piece> }> {
    for (;;) {
      const at = this.#arrived.findIndex((one) => 'error' in one || only === null || one.from === only);
      const [found] = at < 0 ? [] : this.#arrived.splice(at, 1);
      if (found && 'error' in found) throw found.error;
      if (found) return found;
      this.#waitingSince = performance.now();
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#waited = this.waited();
      this.#waitingSince = null;
    }
  }
}
