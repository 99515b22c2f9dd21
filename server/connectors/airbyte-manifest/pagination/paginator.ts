import { ConfigurationError } from '../../contract/errors.ts';
import { PageGuard } from '../../kits/rest/page-guard.ts';
import type { PaginationStrategy, Paginator } from '../components/request-components.ts';
import { pyText } from '../interpolation/python-literal.ts';
import type { Injection } from '../requests/build-request.ts';
import type { Interpolation } from '../interpolation/template.ts';
import { numberOf } from '../interpolation/values.ts';
import { headersOf, pythonResponse, type SeenResponse } from '../requests/error-handling.ts';
import { inPython, type PythonSession } from '../python/session.ts';

/** Which page of a request is next. */
export interface Position {
  /** Number of pages before this one. */
  index: number;
  /** Page number, offset or cursor; null: none is sent. */
  token: unknown;
}

export interface PageSeen {
  seen: SeenResponse;
  /** Records of the page, before the record filter. */
  count: number;
  last: Record<string, unknown> | null;
}

export interface ManifestPaginator {
  first: Position;
  /** Values that the position adds to the request. */
  injections(position: Position): Injection[];
  /** The path or URL of the page; null: that of the requester. */
  address(position: Position): string | null;
  /** Null: that was the last page. @throws ConfigurationError when the pages would never end */
  next(position: Position, page: PageSeen): Position | null | Promise<Position | null>;
}

interface Paging extends Interpolation {
  max_pages: number;
  python: PythonSession | null;
}

export async function createPaginator(
  paginator: Paginator | null | undefined,
  paging: Paging,
): Promise<ManifestPaginator> {
  const first: Position = { index: 0, token: null };
  if (!paginator || paginator.type === 'NoPagination') {
    return { first, injections: () => [], address: () => null, next: () => null };
  }
  const { pagination_strategy: strategy, page_size_option, page_token_option } = paginator;
  const custom = strategy.type === 'PythonPagination' ? await openStrategy(strategy.component, paging) : null;
  const size = custom ? custom.size : sizeOf(strategy as DeclaredStrategy, paging);
  const start = strategy.type === 'PageIncrement' ? strategy.start_from_page : 0;
  const sendsFirst = 'inject_on_first_request' in strategy && strategy.inject_on_first_request;
  const guard = new PageGuard(paging.max_pages);
  return {
    first: { index: 0, token: custom ? custom.initial : sendsFirst ? start : null },
    injections({ token }) {
      const sized = page_size_option && size !== null ? [{ option: page_size_option, value: size }] : [];
      const tokened =
        page_token_option?.type === 'RequestOption' && token !== null
          ? [{ option: page_token_option, value: token }]
          : [];
      return [...tokened, ...sized];
    },
    address: ({ token }) => (page_token_option?.type === 'RequestPath' && token !== null ? pyText(token) : null),
    async next(position, page) {
      const token = custom
        ? await custom.next(position, page)
        : nextToken(strategy as DeclaredStrategy, { position, page, size, start, paging });
      if (token === null || token === undefined) return null;
      const { text } = page.seen.response;
      // Scroll APIs use one token for all pages: only token and page together reveal a loop.
      const name = custom || strategy.type === 'CursorPagination' ? `${pyText(token)} ${Bun.hash(text)}` : null;
      guard.check({ index: position.index, name, text, records: page.count });
      return { index: position.index + 1, token };
    },
  };
}

interface CustomStrategy {
  initial: unknown;
  size: number | null;
  next(position: Position, page: PageSeen): Promise<unknown>;
}

/** A strategy in Python. */
async function openStrategy(component: unknown, { python }: Paging): Promise<CustomStrategy> {
  const session = inPython(python);
  const { initial, size } = (await session.call(component, 'paging')) as { initial: unknown; size: number | null };
  return {
    initial,
    size,
    next: ({ token }, { seen, count, last }) =>
      session.call(component, 'next_page', [pythonResponse(seen.response), count, last, token]),
  };
}

type DeclaredStrategy = Exclude<PaginationStrategy, { type: 'PythonPagination' }>;

interface Stepping {
  position: Position;
  page: PageSeen;
  size: number | null;
  start: number;
  paging: Paging;
}

function nextToken(strategy: DeclaredStrategy, { position, page, size, start, paging }: Stepping): unknown {
  if (strategy.type === 'CursorPagination') return nextCursor(strategy, { position, page, paging });
  if (page.count === 0 || (size !== null && page.count < size)) return null;
  const at = numberOf(position.token) ?? start;
  return strategy.type === 'PageIncrement' ? at + 1 : at + page.count;
}

function nextCursor(
  strategy: Extract<PaginationStrategy, { type: 'CursorPagination' }>,
  { position, page, paging }: Pick<Stepping, 'position' | 'page' | 'paging'>,
): unknown {
  const scope = {
    ...paging.scope,
    response: page.seen.json(),
    headers: headersOf(page.seen.response),
    last_record: page.last,
    last_page_size: page.count,
    last_page_token_value: position.token,
  };
  if (strategy.stop_condition && paging.templates.truth(strategy.stop_condition, scope)) return null;
  const token = paging.templates.value(strategy.cursor_value, scope);
  const isEmpty =
    token === null || token === false || token === 0 || (typeof token === 'object' && Object.keys(token).length === 0);
  return isEmpty ? null : token;
}

function sizeOf(strategy: DeclaredStrategy, { templates, scope }: Paging): number | null {
  const { page_size: size } = strategy;
  if (size === null || size === undefined) return null;
  const value = typeof size === 'number' ? size : numberOf(templates.value(size, scope));
  if (value === null || !Number.isInteger(value) || value < 1) {
    throw new ConfigurationError(
      'invalid_page_size',
      `The page size "${String(size).slice(0, 100)}" is not a positive integer`,
    );
  }
  return value;
}
