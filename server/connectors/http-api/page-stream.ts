import { DataError } from '../errors.ts';
import { jsonErrorAt, parseExactly } from '../file/json-line.ts';
import type { Answer } from './exchange.ts';

export interface Fetched<Page, Position> {
  page: Page;
  next: Position | null;
}

interface Paging<Page, Position> {
  first: Position;
  fetch(position: Position): Promise<Fetched<Page, Position>>;
  signal: AbortSignal;
}

/** Pages one after the other; the next one is on its way while the reader is busy with this one. */
export async function* prefetched<Page, Position>({
  first,
  fetch,
  signal,
}: Paging<Page, Position>): AsyncGenerator<Page> {
  const ask = (position: Position) => {
    const asked = fetch(position);
    // Thrown where it is awaited; until then it must not count as unhandled.
    asked.catch(() => {});
    return asked;
  };
  for (let pending: Promise<Fetched<Page, Position>> | null = ask(first); pending; ) {
    const { page, next }: Fetched<Page, Position> = await pending;
    signal.throwIfAborted();
    pending = next === null ? null : ask(next);
    yield page;
  }
}

interface Parted<Part, Item> {
  parts: AsyncIterable<Part>;
  open(part: Part): AsyncGenerator<Item>;
  concurrency: number;
}

/** Begins the items of a few parts at the same time; gives them in the parts' order. */
export async function* ahead<Part, Item>({
  parts,
  open,
  concurrency,
}: Parted<Part, Item>): AsyncGenerator<{ of: Part; items: AsyncGenerator<Item> }> {
  const waiting: { of: Part; items: AsyncGenerator<Item> }[] = [];
  try {
    for await (const part of parts) {
      waiting.push({ of: part, items: begun(open(part)) });
      if (waiting.length > concurrency) yield waiting.shift() as (typeof waiting)[0];
    }
    while (waiting.length > 0) yield waiting.shift() as (typeof waiting)[0];
  } finally {
    await Promise.allSettled(waiting.map(({ items }) => items.return(undefined)));
  }
}

/** The same items, the first one asked for at once. */
async function* resumed<Item>(items: AsyncGenerator<Item>, first: Promise<IteratorResult<Item>>): AsyncGenerator<Item> {
  try {
    for (let next = await first; !next.done; next = await items.next()) yield next.value;
  } finally {
    await items.return(undefined);
  }
}

function begun<Item>(items: AsyncGenerator<Item>): AsyncGenerator<Item> {
  const first = items.next();
  // As above: thrown where it is awaited.
  first.catch(() => {});
  return resumed(items, first);
}

/** The JSON of an answer; null for an empty one. @throws DataError naming stream and place */
export function parseAnswer(stream: string, { text, status, url }: Answer): unknown {
  if (text.trim() === '') return null;
  try {
    return parseExactly(text);
  } catch (error) {
    const place = `${stream}: the answer of ${url.host}${url.pathname} (status ${status})`;
    const where = text.trimStart().startsWith('<')
      ? 'is a page of HTML'
      : `is no JSON, at character ${jsonErrorAt(text) + 1}`;
    throw new DataError('malformed_json', `${place} ${where}`, { cause: error });
  }
}
