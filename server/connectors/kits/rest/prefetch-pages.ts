import { DataError } from '../../contract/errors.ts';
import { jsonErrorAt, parseExactly } from '../../cells/json-line.ts';
import type { Answer } from './send.ts';

export interface Fetched<Page, Position> {
  page: Page;
  next: Position | null;
}

/** Looks into an answer that has come: called in the order of the pages. */
export type Look<Page, Position> = () => Fetched<Page, Position>;

interface Paging<Page, Position> {
  first: Position;
  fetch(position: Position): Promise<Look<Page, Position>>;
  /** Where the page after this one probably is, before there is an answer. Absent: nobody can tell. */
  likely?(position: Position): Position | null;
  /** How many pages may be under way at a time. */
  most?: number;
  signal: AbortSignal;
}

/** A page more is asked for ahead of its turn when there have been so many: what is too much at the end stays a part of it. */
const PAGES_FOR_ONE_AHEAD = 4;

/**
 * Pages in their order. The next one is on its way while the reader is busy with this one; where its place is known
 * beforehand, some more. What was asked for in vain, behind the last page, is dropped, be it an error.
 */
export async function* prefetched<Page, Position>(paging: Paging<Page, Position>): AsyncGenerator<Page> {
  const { first, fetch, likely = () => null, most = 1, signal } = paging;
  const ask = (position: Position) => {
    const asked = { position, answer: fetch(position) };
    // Thrown where it is awaited; until then it must not count as unhandled.
    asked.answer.catch(() => {});
    return asked;
  };
  let waiting = [ask(first)];
  let isTold = true;
  const fill = (index: number) => {
    const depth = isTold ? Math.min(most, 1 + Math.floor(index / PAGES_FOR_ONE_AHEAD)) : 1;
    for (let last = waiting.at(-1); last && waiting.length < depth; last = waiting.at(-1)) {
      const guess = likely(last.position);
      if (guess === null) return;
      waiting.push(ask(guess));
    }
  };
  for (let index = 0; ; index += 1) {
    fill(index);
    const current = waiting.shift();
    if (!current) return;
    const look = await current.answer;
    signal.throwIfAborted();
    const { page, next } = look();
    if (next === null) waiting = [];
    else if (!waiting[0] || !isSame(waiting[0].position, next)) {
      // Guessed wrong, as where a service gives fewer records than asked for: it would be wrong again.
      if (waiting[0]) isTold = false;
      waiting = [ask(next)];
    }
    yield page;
  }
}

const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

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
