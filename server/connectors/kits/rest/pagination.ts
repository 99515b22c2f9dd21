import { ConfigurationError } from '../../contract/errors.ts';
import { digitsOf } from '../../cells/json-cells.ts';
import { linkTarget } from './link-header.ts';
import { PageGuard } from './page-guard.ts';
import { plainPath, selectorOf } from './selector.ts';
import type { HttpResponse } from './send.ts';

/** When the pages of a request end. */
interface Stop {
  /** `short_page` saves the request for an empty page where the service always fills its pages. */
  stop: 'empty_page' | 'short_page';
  size: number | null;
  /** JMESPath. The pages end when it selects false, null or nothing. */
  has_more?: string | undefined;
  max_pages: number;
}

/** How the service divides its records into pages. Selectors are JMESPath. */
export type Pagination =
  | { type: 'none' }
  | (Stop & { type: 'page_number'; start: number })
  | (Stop & { type: 'offset' })
  | (Stop & { type: 'cursor'; token: string })
  | (Stop & { type: 'link_header'; rel: string })
  | (Stop & { type: 'next_address'; address: string });
type Paginated = Exclude<Pagination, { type: 'none' }>;

/** Which page of a request is next. */
export interface Position {
  /** Number of pages before this one. */
  index: number;
  token: string | null;
  number: number;
  offset: number;
  /** The complete URL of the page; null: it is built from the request. */
  address: URL | null;
}

export interface PageSeen {
  response: HttpResponse;
  /** The parsed body. */
  json: unknown;
  records: number;
}

export interface Paginator {
  first: Position;
  /** Null: that was the last page. @throws ConfigurationError when the pages repeat themselves */
  next(position: Position, page: PageSeen): Position | null;
  /** The next position as far as it is known without the response; null: only the response has it. */
  predict(position: Position): Position | null;
  /** The next position as the unread response names it; null: unknown. Another part of the text may look like it. */
  foresee(position: Position, response: HttpResponse): Position | null;
}

/** @param allowed origins that the URL of a next page may have */
export function createPaginator(pagination: Pagination, allowed: ReadonlySet<string>): Paginator {
  const number = pagination.type === 'page_number' ? pagination.start : 1;
  const first: Position = { index: 0, token: null, number, offset: 0, address: null };
  if (pagination.type === 'none') return { first, next: () => null, predict: () => null, foresee: () => null };
  const hasMore = pagination.has_more === undefined ? null : selectorOf(pagination.has_more);
  const step = stepOf(pagination, allowed);
  const guard = new PageGuard(pagination.max_pages);
  const predicted = predictionOf(pagination);
  const foreseen = foresightOf(pagination, allowed);
  const after = (position: Position, moved: Partial<Position> | null): Position | null =>
    moved && position.index + 1 < pagination.max_pages ? { ...position, ...moved, index: position.index + 1 } : null;
  return {
    first,
    predict: (position) => after(position, predicted(position)),
    foresee: (position, response) => after(position, foreseen(response)),
    next(position, page) {
      if (hasMore && isEmpty(hasMore(page.json))) return null;
      const counted = pagination.type === 'page_number' || pagination.type === 'offset';
      // Pages that name the next one may be empty in between.
      if (page.records === 0 && counted) return null;
      if (pagination.stop === 'short_page' && pagination.size !== null && page.records < pagination.size) return null;
      const moved = step(position, page);
      if (!moved) return null;
      const name = moved.token ?? moved.address?.href ?? null;
      guard.check({ index: position.index, name, text: page.response.text, records: page.records });
      return { ...position, ...moved, index: position.index + 1 };
    },
  };
}

const isEmpty = (value: unknown) =>
  value === null || value === undefined || value === false || value === 0 || value === '';

type Step = (position: Position, page: PageSeen) => Partial<Position> | null;

function stepOf(pagination: Paginated, allowed: ReadonlySet<string>): Step {
  switch (pagination.type) {
    case 'page_number':
      return ({ number }) => ({ number: number + 1 });
    case 'offset':
      return ({ offset }, { records }) => ({ offset: offset + records });
    case 'cursor': {
      const select = selectorOf(pagination.token);
      return (_, { json }) => {
        const token = textOf(select(json));
        return token === null ? null : { token };
      };
    }
    case 'link_header':
      return (_, { response: { headers, url } }) =>
        addressed(linkTarget(headers.get('link'), pagination.rel), url, allowed);
    case 'next_address': {
      const select = selectorOf(pagination.address);
      return (_, { json, response }) => addressed(textOf(select(json)), response.url, allowed);
    }
  }
}

function predictionOf(pagination: Paginated): (position: Position) => Partial<Position> | null {
  if (pagination.type === 'page_number') return ({ number }) => ({ number: number + 1 });
  const size = pagination.type === 'offset' ? pagination.size : null;
  return ({ offset }) => (size === null ? null : { offset: offset + size });
}

/** The value of a member of JSON: a text without escapes, or an integer. */
const MEMBER_VALUE = /^\s*:\s*(?:"([^"\\]+)"|(-?\d{1,15}))\s*[,}]/;
const MAX_TOKEN_LENGTH = 4096;

type Foresight = (response: HttpResponse) => Partial<Position> | null;

/** Finds the token or the link in a response where it alone decides whether there is a next page. */
function foresightOf(pagination: Paginated, allowed: ReadonlySet<string>): Foresight {
  const isAlone = pagination.has_more === undefined && pagination.stop === 'empty_page';
  if (isAlone && pagination.type === 'link_header') {
    return ({ headers, url }) => {
      const target = linkTarget(headers.get('link'), pagination.rel);
      const address = target === null ? null : URL.parse(target, url.href);
      return address && allowed.has(address.origin) ? { address } : null;
    };
  }
  const name = isAlone && pagination.type === 'cursor' ? plainPath(pagination.token)?.at(-1) : undefined;
  if (name === undefined) return () => null;
  const key = `"${name}"`;
  return ({ text }) => {
    const at = text.lastIndexOf(key);
    if (at < 0) return null;
    const from = at + key.length;
    const found = MEMBER_VALUE.exec(text.slice(from, from + MAX_TOKEN_LENGTH));
    const token = found?.[1] ?? found?.[2];
    return token === undefined ? null : { token };
  };
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined || value === '' || value === false) return null;
  return typeof value === 'string' ? value : (digitsOf(value) ?? JSON.stringify(value));
}

function addressed(text: string | null, from: URL, allowed: ReadonlySet<string>): Partial<Position> | null {
  if (text === null) return null;
  const address = URL.parse(text, from.href);
  if (!address)
    throw new ConfigurationError('invalid_address', `The URL of the next page is not valid: ${text.slice(0, 200)}`);
  if (!allowed.has(address.origin)) {
    throw new ConfigurationError(
      'foreign_address',
      `The next page is on ${address.host}, which is not an allowed origin. It would receive the credentials.`,
    );
  }
  return { address };
}
