import { ConfigurationError } from '../../contract/errors.ts';
import { digitsOf } from '../../cells/json-cells.ts';
import type { Answer } from './send.ts';
import type { Pagination } from '../../http-api/definition.ts';
import { selectorOf } from './selector.ts';

/** Where in the pages of one request we are. */
export interface Position {
  /** Pages before this one. */
  index: number;
  token: string | null;
  number: number;
  offset: number;
  /** The whole address of the page; null: made of the request. */
  address: URL | null;
}

export interface PageSeen {
  answer: Answer;
  /** The answer's JSON. */
  json: unknown;
  records: number;
}

export interface Paginator {
  first: Position;
  /** Null: that was the last page. @throws ConfigurationError when the pages go round in circles */
  next(position: Position, page: PageSeen): Position | null;
  /** What `next` will probably say of the page there, without its answer; null: only that tells. */
  likely(position: Position): Position | null;
}

/** @param allowed origins that an address may lead to. */
export function createPaginator(pagination: Pagination, allowed: ReadonlySet<string>): Paginator {
  const number = pagination.type === 'page_number' ? pagination.start : 1;
  const first: Position = { index: 0, token: null, number, offset: 0, address: null };
  if (pagination.type === 'none') return { first, next: () => null, likely: () => null };
  const hasMore = pagination.has_more === undefined ? null : selectorOf(pagination.has_more);
  const step = stepOf(pagination, allowed);
  const circles = new CircleGuard();
  const guess = guessOf(pagination);
  return {
    first,
    likely(position) {
      const moved = position.index + 1 < pagination.max_pages ? guess(position) : null;
      return moved && { ...position, ...moved, index: position.index + 1 };
    },
    next(position, page) {
      if (hasMore && isNothing(hasMore(page.json))) return null;
      const counted = pagination.type === 'page_number' || pagination.type === 'offset';
      // Pages with a name of the next one may be empty in between.
      if (page.records === 0 && counted) return null;
      if (pagination.stop === 'short_page' && pagination.size !== null && page.records < pagination.size) return null;
      const moved = step(position, page);
      if (!moved) return null;
      if (position.index + 1 >= pagination.max_pages) {
        throw new ConfigurationError('too_many_pages', `There are more than ${pagination.max_pages} pages`);
      }
      circles.check(moved.token ?? moved.address?.href ?? null, page);
      return { ...position, ...moved, index: position.index + 1 };
    },
  };
}

const isNothing = (value: unknown) =>
  value === null || value === undefined || value === false || value === 0 || value === '';

type Step = (position: Position, page: PageSeen) => Partial<Position> | null;

function stepOf(pagination: Exclude<Pagination, { type: 'none' }>, allowed: ReadonlySet<string>): Step {
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
      return (_, { answer }) => addressed(linkIn(answer.headers.get('link'), pagination.rel), answer.url, allowed);
    case 'next_address': {
      const select = selectorOf(pagination.address);
      return (_, { json, answer }) => addressed(textOf(select(json)), answer.url, allowed);
    }
  }
}

function guessOf(pagination: Exclude<Pagination, { type: 'none' }>): (position: Position) => Partial<Position> | null {
  if (pagination.type === 'page_number') return ({ number }) => ({ number: number + 1 });
  const size = pagination.type === 'offset' ? pagination.size : null;
  return ({ offset }) => (size === null ? null : { offset: offset + size });
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined || value === '' || value === false) return null;
  return typeof value === 'string' ? value : (digitsOf(value) ?? JSON.stringify(value));
}

function addressed(text: string | null, from: URL, allowed: ReadonlySet<string>): Partial<Position> | null {
  if (text === null) return null;
  const address = URL.parse(text, from.href);
  if (!address)
    throw new ConfigurationError('invalid_address', `The next page's address is none: ${text.slice(0, 200)}`);
  if (!allowed.has(address.origin)) {
    throw new ConfigurationError(
      'foreign_address',
      `The next page is at ${address.host}, which is not among allowed_origins: it would be sent the credentials`,
    );
  }
  return { address };
}

const LINK = /<([^>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+\s*(?:=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*))?)*)/g;
const PARAMETER = /;\s*([\w!#$&+.^`|~*-]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?/g;

/** The links of a Link header by their relation, each with its address as `url` and its parameters. */
export function linkParts(header: string | null): Record<string, Record<string, string>> {
  const links: Record<string, Record<string, string>> = {};
  for (const [, target = '', parameters = ''] of header?.matchAll(LINK) ?? []) {
    const link: Record<string, string> = { url: target };
    for (const [, name = '', quoted, bare = ''] of parameters.matchAll(PARAMETER))
      link[name.toLowerCase()] = quoted ?? bare;
    links[link.rel ?? target] = link;
  }
  return links;
}

/** The address of a relation in a Link header (RFC 8288). */
export function linkIn(header: string | null, rel: string): string | null {
  for (const [, target = '', parameters = ''] of header?.matchAll(LINK) ?? []) {
    for (const [, name = '', quoted, bare = ''] of parameters.matchAll(PARAMETER)) {
      if (name.toLowerCase() !== 'rel') continue;
      if ((quoted ?? bare).toLowerCase().split(/\s+/).includes(rel.toLowerCase())) return target;
    }
  }
  return null;
}

/**
 * Notices pages that never end, in no more memory than two of their names: a token or address that came before (Brent's
 * way to find a cycle), or the same records twice in a row.
 */
export class CircleGuard {
  #kept: string | null = null;
  #steps = 0;
  #power = 1;
  #body: number | bigint | null = null;

  check(name: string | null, page: PageSeen): void {
    if (name !== null) {
      if (name === this.#kept) throw circle('the name of the next page has come before');
      this.#steps += 1;
      if (this.#steps === this.#power) [this.#kept, this.#steps, this.#power] = [name, 0, this.#power * 2];
      return;
    }
    const body = page.records > 0 ? Bun.hash(page.answer.text) : null;
    if (body !== null && body === this.#body)
      throw circle('two pages are the same, so the page asked for is not heeded');
    this.#body = body;
  }
}

const circle = (why: string) => new ConfigurationError('endless_pages', `The pages would never end: ${why}`);
