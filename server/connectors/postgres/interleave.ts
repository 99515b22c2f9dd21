import type { Piece } from './copy-out.ts';

type Reader = AsyncIterator<Piece>;
type Arrival = { from: Reader } & ({ result: IteratorResult<Piece> } | { error: unknown });

/**
 * Makes one stream of rows out of several, taking from whichever has some, and never beginning a row within another.
 * Memory is bounded by what the streams hold back themselves and the beginning of one row of each. Throws the first
 * error; whoever leaves early, or gets an error, has to end the streams.
 */
export async function* interleave(streams: AsyncIterable<Piece>[]): AsyncGenerator<Buffer> {
  const arrivals = new Arrivals();
  /** Of each reader, the beginning of a row whose end has not come. */
  const begun = new Map<Reader, Buffer>();
  /** Part of its row has been given, so the rest comes next. */
  let within: Reader | null = null;
  for (const stream of streams) arrivals.ask(stream[Symbol.asyncIterator]());
  for (let open = streams.length; open > 0; ) {
    const { from, result } = await arrivals.next(within);
    if (result.done) {
      open -= 1;
      continue;
    }
    arrivals.ask(from);
    const { bytes, rows_end } = result.value;
    const start = begun.get(from);
    begun.delete(from);
    if (rows_end === 0) {
      // A row as large as this is not kept until it is whole.
      within = from;
      if (start) yield start;
      yield bytes;
      continue;
    }
    within = null;
    if (rows_end < bytes.length) begun.set(from, bytes.subarray(rows_end));
    const rows = bytes.subarray(0, rows_end);
    yield start ? Buffer.concat([start, rows]) : rows;
  }
}

/** What readers gave, in the order of its coming. Not Promise.race: it would pile up reactions on a slow reader. */
class Arrivals {
  readonly #arrived: Arrival[] = [];
  #wake = () => {};

  ask(from: Reader): void {
    const arrive = (arrival: Arrival) => {
      this.#arrived.push(arrival);
      this.#wake();
    };
    from.next().then(
      (result) => arrive({ from, result }),
      (error: unknown) => arrive({ from, error }),
    );
  }

  /** Of `only` that reader, where there is one; an error of any of them at once. */
  async next(only: Reader | null): Promise<{ from: Reader; result: IteratorResult<Piece> }> {
    for (;;) {
      const at = this.#arrived.findIndex((one) => 'error' in one || only === null || one.from === only);
      const [found] = at < 0 ? [] : this.#arrived.splice(at, 1);
      if (found && 'error' in found) throw found.error;
      if (found) return found;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
