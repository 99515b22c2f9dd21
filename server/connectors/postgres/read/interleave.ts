import type { Piece } from '../connection/copy-out.ts';

type Reader = AsyncIterator<Piece>;
type Arrival = { from: Reader } & ({ result: IteratorResult<Piece> } | { error: unknown });

/**
 * One stream of rows out of several, taking from whichever has some, and never beginning a row within another. Memory
 * is bounded by what the streams hold back themselves and the beginning of one row of each. Throws the first error;
 * whoever leaves early, or gets an error, has to end the streams.
 */
export class Interleaved implements AsyncIterable<Buffer> {
  readonly #arrived: Arrival[] = [];
  #open = 0;
  #wake = () => {};
  #waited = 0;
  #waitingSince: number | null = null;

  /** Also while it is read, as long as another one has not ended. */
  add(stream: AsyncIterable<Piece>): void {
    this.#open += 1;
    this.#ask(stream[Symbol.asyncIterator]());
  }

  /** How long rows have been waited for, in milliseconds; the rest of the time they waited to be taken. */
  waited(): number {
    return this.#waited + (this.#waitingSince === null ? 0 : performance.now() - this.#waitingSince);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    /** Of each reader, the beginning of a row whose end has not come. */
    const begun = new Map<Reader, Buffer>();
    /** Part of its row has been given, so the rest comes next. */
    let within: Reader | null = null;
    while (this.#open > 0) {
      const { from, result } = await this.#next(within);
      if (result.done) {
        this.#open -= 1;
        continue;
      }
      this.#ask(from);
      const { bytes, rows_end } = result.value;
      const start = begun.get(from);
      begun.delete(from);
      // Alone there is nobody to make room for; a row as large as a piece is not kept until it is whole.
      const end: number = this.#open === 1 || rows_end === 0 ? bytes.length : rows_end;
      within = end === rows_end ? null : from;
      if (end < bytes.length) begun.set(from, bytes.subarray(end));
      const rows = bytes.subarray(0, end);
      yield start ? Buffer.concat([start, rows]) : rows;
    }
  }

  /** Not Promise.race over all of them: it would pile up reactions on a slow reader. */
  #ask(from: Reader): void {
    const arrive = (arrival: Arrival) => {
      this.#arrived.push(arrival);
      this.#wake();
    };
    from.next().then(
      (result) => arrive({ from, result }),
      (error: unknown) => arrive({ from, error }),
    );
  }

  /** What came first, of `only` that reader where there is one; an error of any of them at once. */
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
