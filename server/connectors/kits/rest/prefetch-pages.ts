export interface Fetched<Page, Position> {
  page: Page;
  next: Position | null;
}

/** Reads a response that has arrived. Called in the order of the pages. */
export type ReadResponse<Page, Position> = () => Fetched<Page, Position>;

interface Paging<Page, Position> {
  first: Position;
  fetch(position: Position): Promise<ReadResponse<Page, Position>>;
  /** The position after this one as far as it is known without a response. Absent: only responses have it. */
  predict?(position: Position): Position | null;
  /** How many pages may be requested at the same time. */
  max_ahead?: number;
  signal: AbortSignal;
}

/** After this many pages one more is requested ahead, so that the pages requested in vain stay a small share. */
const PAGES_PER_PAGE_AHEAD = 4;

/**
 * Pages in order. The next one is requested while the consumer works on the current one; where positions can be
 * predicted, several are. Requests past the last page are discarded, even when they fail.
 */
export async function* prefetched<Page, Position>(paging: Paging<Page, Position>): AsyncGenerator<Page> {
  const { first, fetch, predict = () => null, max_ahead = 1, signal } = paging;
  const request = (position: Position) => {
    const requested = { position, response: fetch(position) };
    // Thrown where it is awaited; until then the rejection must not count as unhandled.
    requested.response.catch(() => {});
    return requested;
  };
  let pending = [request(first)];
  let isPredictable = true;
  const fill = (index: number) => {
    const depth = isPredictable ? Math.min(max_ahead, 1 + Math.floor(index / PAGES_PER_PAGE_AHEAD)) : 1;
    for (let last = pending.at(-1); last && pending.length < depth; last = pending.at(-1)) {
      const position = predict(last.position);
      if (position === null) return;
      pending.push(request(position));
    }
  };
  for (let index = 0; ; index += 1) {
    fill(index);
    const current = pending.shift();
    if (!current) return;
    const read = await current.response;
    signal.throwIfAborted();
    const { page, next } = read();
    if (next === null) pending = [];
    else if (!pending[0] || !isSame(pending[0].position, next)) {
      // Wrong once, for example where pages are not full: further predictions would be wrong too.
      if (pending[0]) isPredictable = false;
      pending = [request(next)];
    }
    yield page;
  }
}

const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

interface Slices<Slice, Item> {
  slices: AsyncIterable<Slice>;
  open(slice: Slice): AsyncGenerator<Item>;
  concurrency: number;
}

export interface OpenSlice<Slice, Item> {
  slice: Slice;
  items: AsyncGenerator<Item>;
}

/** Starts reading a few slices at the same time, and returns them in order. */
export async function* slicesAhead<Slice, Item>({
  slices,
  open,
  concurrency,
}: Slices<Slice, Item>): AsyncGenerator<OpenSlice<Slice, Item>> {
  const waiting: OpenSlice<Slice, Item>[] = [];
  try {
    for await (const slice of slices) {
      waiting.push({ slice, items: started(open(slice)) });
      if (waiting.length > concurrency) yield waiting.shift() as OpenSlice<Slice, Item>;
    }
    while (waiting.length > 0) yield waiting.shift() as OpenSlice<Slice, Item>;
  } finally {
    await Promise.allSettled(waiting.map(({ items }) => items.return(undefined)));
  }
}

/** The same items, with the first one requested at once. */
function started<Item>(items: AsyncGenerator<Item>): AsyncGenerator<Item> {
  const first = items.next();
  // As above: thrown where it is awaited.
  first.catch(() => {});
  return continued(items, first);
}

async function* continued<Item>(
  items: AsyncGenerator<Item>,
  first: Promise<IteratorResult<Item>>,
): AsyncGenerator<Item> {
  try {
    for (let next = await first; !next.done; next = await items.next()) yield next.value;
  } finally {
    await items.return(undefined);
  }
}
