import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { linkTarget } from '../../server/connectors/kits/rest/link-header.ts';
import { createPaginator } from '../../server/connectors/kits/rest/pagination.ts';
import { prefetched } from '../../server/connectors/kits/rest/prefetch-pages.ts';
import { type Answering, json, makeItems, paged, startHttpServer } from '../support/http-server.ts';
import { readAll } from './http-support.ts';

const server = startHttpServer();
afterAll(() => server.close());
beforeEach(() => {
  server.seen.length = 0;
});

const items = makeItems(250);
const ids = items.map(({ id }) => String(id));
const idsOf = (rows: (string | null)[][]) => rows.map(([id]) => id);
const read = (stream: object, more: object = {}) =>
  readAll({ base_url: server.url, streams: [{ name: 'items', ...stream }], ...more });

describe('every way to page gives every record once and in order', () => {
  const limit = '100';
  const ways: [string, Answering, object][] = [
    [
      'page number',
      paged.byNumber(items),
      { query: { page: '{{ page.number }}', limit }, pagination: { type: 'page_number' } },
    ],
    [
      'page number, short page ends',
      paged.byNumber(items),
      {
        query: { page: '{{ page.number }}', limit: '{{ page.size }}' },
        pagination: { type: 'page_number', size: 100, stop: 'short_page' },
      },
    ],
    [
      'offset',
      paged.byOffset(items),
      { query: { offset: '{{ page.offset }}', limit }, records: 'data.items', pagination: { type: 'offset' } },
    ],
    [
      'cursor in the body',
      paged.byCursor(items),
      { query: { cursor: '{{ page.token }}', limit }, records: 'items', pagination: { type: 'cursor', token: 'next' } },
    ],
    ['Link header', paged.byLink(items), { query: { limit }, pagination: { type: 'link_header' } }],
    [
      'next address in the body',
      paged.byAddress(items, () => server.url),
      { query: { limit }, records: 'results', pagination: { type: 'next_address', address: 'links.next' } },
    ],
  ];
  test.each(ways)('%s', async (way, answer, { query, ...stream }: any) => {
    server.on('/items', answer);
    const { rows } = await read({ request: { path: '/items', query }, ...stream });
    expect(idsOf(rows)).toEqual(ids);
    // Three pages, and one more where only an empty page marks the end; discovery requested the same ones.
    const pages = /^(page number|offset)$/.test(way) ? 4 : 3;
    expect(server.seen).toHaveLength(2 * pages);
  });

  test('a cursor in the body of a POST, kept with its type', async () => {
    server.on('/search', ({ body }) => {
      const asked = JSON.parse(body);
      const from = asked.after ?? 0;
      return Response.json({ items: items.slice(from, from + 100), next: from + 100 < 250 ? from + 100 : null });
    });
    const { rows } = await read({
      request: { method: 'POST', path: '/search', body: { filter: ['all'], after: '{{ page.token }}' } },
      records: 'items',
      pagination: { type: 'cursor', token: 'next' },
    });
    expect(idsOf(rows)).toEqual(ids);
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual({ filter: ['all'] });
  });

  test('a server that gives smaller pages than asked for loses nothing', async () => {
    server.on('/items', ({ query }) => Response.json(items.slice(Number(query.offset), Number(query.offset) + 30)));
    const request = { path: '/items', query: { offset: '{{ page.offset }}', limit: '{{ page.size }}' } };
    const { rows } = await read({ request, pagination: { type: 'offset', size: 100 } });
    expect(idsOf(rows)).toEqual(ids);
  });

  test('has_more and a status of the end stop as well', async () => {
    server.on('/items', ({ query }) =>
      Number(query.page) > 2
        ? new Response('', { status: 404 })
        : Response.json({ items: [{ id: 1, page: query.page }] }),
    );
    const request = { path: '/items', query: { page: '{{ page.number }}' } };
    const ends = { request, records: 'items', pagination: { type: 'page_number', end_statuses: [404] } };
    expect((await read(ends)).rows).toHaveLength(2);
    server.on('/items', ({ query }) =>
      Response.json({ items: [{ id: 1, page: query.page }], more: Number(query.page) < 3 }),
    );
    const more = { request, records: 'items', pagination: { type: 'page_number', has_more: 'more' } };
    expect((await read(more)).rows).toHaveLength(3);
  });
});

describe('pages whose place is known beforehand', () => {
  const many = makeItems(4000);
  const columns = { schema: { properties: { id: { type: 'integer' } } } };
  /** Responses that wait for each other, up to `together` of them, and the largest number at once. */
  const counting = (answer: Answering, together: number) => {
    let [under, most] = [0, 0];
    const gate = { open: Promise.withResolvers<void>() };
    const slow: Answering = async (request) => {
      under += 1;
      most = Math.max(most, under);
      if (under >= together) gate.open.resolve();
      await Promise.race([gate.open.promise, Bun.sleep(5)]);
      under -= 1;
      return answer(request);
    };
    return { slow, most: () => most };
  };
  /** A separate path for each test: a late request of one test may arrive during the next. */
  const byNumber = (path: string) => ({ request: { path, query: { page: '{{ page.number }}' } }, ...columns });
  const askedOf = (path: string) => server.seen.filter((one) => one.path === path);

  test.each([
    ['two at a time', {}, 2],
    ['four at a time', { rate_limit: { concurrency: 4 } }, 4],
    ['one at a time where requests are counted', { rate_limit: { requests_per_second: 10_000, concurrency: 4 } }, 1],
  ])('are requested %s, in order, with few unneeded requests', async (_, settings, together) => {
    const { slow, most } = counting(paged.byNumber(many), together);
    const path = `/many-${together}`;
    server.on(path, slow);
    const { rows } = await read({ ...byNumber(path), pagination: { type: 'page_number' } }, settings);
    expect(idsOf(rows)).toEqual(many.map(({ id }) => String(id)));
    expect(most()).toBe(together);
    expect(askedOf(path).length).toBeLessThan(41 + together);
  });

  test('an error behind the last page is none, one before it is', async () => {
    const answer = paged.byNumber(many.slice(0, 1000));
    const broken = (at: number) => (request: Parameters<Answering>[0]) =>
      Number(request.query.page) === at ? Response.json({ message: 'no such page' }, { status: 400 }) : answer(request);
    const pagination = { type: 'page_number', size: 100, stop: 'short_page', has_more: 'length(@) == `100`' };
    server.on('/ends', async (request) =>
      request.query.page === '10' ? Response.json([{ id: 7 }]) : broken(11)(request),
    );
    const { rows } = await read({ ...byNumber('/ends'), pagination });
    expect(rows).toHaveLength(901);
    server.on('/breaks', broken(9));
    await expect(read({ ...byNumber('/breaks'), pagination })).rejects.toThrow('no such page');
  });

  test('a service that gives fewer records than asked for is not asked twice for each page', async () => {
    server.on('/halves', ({ query }) => Response.json(many.slice(Number(query.offset), Number(query.offset) + 50)));
    const request = { path: '/halves', query: { offset: '{{ page.offset }}' } };
    const { rows } = await read({ request, ...columns, pagination: { type: 'offset', size: 100 } });
    expect(idsOf(rows)).toEqual(many.map(({ id }) => String(id)));
    expect(askedOf('/halves').length).toBeLessThan(81 + 5);
  });

  test('a stream of few pages is asked for those alone', async () => {
    server.on('/few', paged.byNumber(many.slice(0, 300)));
    await read({ ...byNumber('/few'), pagination: { type: 'page_number' } }, { rate_limit: { concurrency: 4 } });
    expect(askedOf('/few').map(({ query }) => query.page)).toEqual(['1', '2', '3', '4']);
  });
});

describe('a next page that the unread response names', () => {
  const pages = Array.from({ length: 8 }, (_, at) => ({ id: at, next: at < 7 ? String(at + 1) : null }));
  const stream = (path: string) => ({
    request: { path, query: { at: '{{ page.token }}' } },
    records: 'items',
    pagination: { type: 'cursor', token: 'next' },
    infer_records: 1,
  });
  const askedFor = (path: string) =>
    server.seen.filter((one) => one.path === path).map(({ query }) => query.at ?? 'first');
  const order = ['first', '1', '2', '3', '4', '5', '6', '7'];

  test('is asked for before the response is read, once that was right', async () => {
    const stepsOf = async (more: { max_ahead?: number }) => {
      const steps: string[] = [];
      const fetch = async (position: number) => {
        for (let prepared = 0; prepared < 20; prepared += 1) await Promise.resolve();
        steps.push(`request ${position}`);
        const next = position < 4 ? position + 1 : null;
        const readIt = () => {
          steps.push(`read ${position}`);
          return { page: position, next };
        };
        return Object.assign(readIt, { foresee: () => next });
      };
      for await (const page of prefetched({ first: 1, fetch, signal: new AbortController().signal, ...more }))
        steps.push(`page ${page}`);
      return steps;
    };
    const begun = ['request 1', 'read 1', 'request 2', 'page 1'];
    const early = ['request 3', 'read 2', 'page 2', 'request 4', 'read 3', 'page 3', 'read 4', 'page 4'];
    expect(await stepsOf({ max_ahead: 2 })).toEqual([...begun, ...early]);
    // Where requests are limited, none is spent on a guess.
    const late = ['read 2', 'request 3', 'page 2', 'read 3', 'request 4', 'page 3', 'read 4', 'page 4'];
    expect(await stepsOf({})).toEqual([...begun, ...late]);
  });

  test('is known from a Link header, if it leads to an allowed origin', () => {
    const url = new URL('https://api.example.com/items');
    const next = (link: string | null, more: { has_more?: string } = {}) => {
      const stop = { stop: 'empty_page', size: null, max_pages: 10, ...more } as const;
      const paginator = createPaginator({ type: 'link_header', rel: 'next', ...stop }, new Set([url.origin]));
      const headers = new Headers(link === null ? {} : { link });
      const found = paginator.foresee(paginator.first, { status: 200, headers, text: '{', bytes: 1, url });
      return found && found.address?.href;
    };
    expect(next('</items?page=2>; rel="next"')).toBe('https://api.example.com/items?page=2');
    expect(next('</items?page=1>; rel="prev"')).toBeNull();
    expect(next('<https://example.org/items?page=2>; rel="next"')).toBeNull();
    expect(next('</items?page=2>; rel="next"', { has_more: 'more' })).toBeNull();
    expect(next(null)).toBeNull();
  });

  test('costs no request where another member has its name', async () => {
    server.on('/behind', ({ query }) => {
      const { id, next } = pages[Number(query.at ?? 0)]!;
      return Response.json({ next, items: [{ id, next: 'no page' }] });
    });
    const { rows } = await read(stream('/behind'));
    expect(idsOf(rows)).toEqual(order.map((_, at) => String(at)));
    expect(askedFor('/behind').filter((at) => !order.includes(at))).toEqual([]);
  });

  test('is read from the response where the text has misled', async () => {
    server.on('/misled', ({ query }) => {
      if (query.at === 'no page') return Response.json({}, { status: 400 });
      const { id, next } = pages[Number(query.at ?? 0)]!;
      const more = id >= 3 ? { about: { next: 'no page' } } : {};
      return Response.json({ items: [{ id }], next, ...more });
    });
    const { rows } = await read(stream('/misled'));
    expect(idsOf(rows)).toEqual(order.map((_, at) => String(at)));
    expect(askedFor('/misled').filter((at) => !order.includes(at))).toEqual(['no page']);
  });

  test.each([
    ['a text with escapes', 'a"\\/\u00e9'],
    ['a text with other characters', 'é {}/?'],
    ['an integer', 9_007_199_254_740_991],
    ['a number with places', 1.5],
  ])('%s', async (_, token) => {
    server.on('/token', ({ query }) => {
      const at = query.at === undefined ? 0 : query.at === String(token) ? 1 : 2;
      return Response.json({ items: [{ id: at }], next: at < 1 ? token : null });
    });
    const { rows } = await read(stream('/token'));
    expect(idsOf(rows)).toEqual(['0', '1']);
  });
});

describe('pages that would never end are noticed', () => {
  const cursor = { request: { path: '/items', query: { cursor: '{{ page.token }}' } }, records: 'items' };
  test.each([1, 2, 7])('a token that repeats after %i pages', async (cycle) => {
    server.on('/items', ({ query }) => {
      const at = Number(query.cursor ?? 0);
      return Response.json({ items: [{ id: at }], next: String(1 + (at % cycle)) });
    });
    const reading = read({ ...cursor, pagination: { type: 'cursor', token: 'next' }, infer_records: 1 });
    await expect(reading).rejects.toMatchObject({ code: 'endless_pages' });
    expect(server.seen.length).toBeLessThan(10 * cycle + 10);
  });

  test('a page number that the server does not heed', async () => {
    server.on('/items', json([{ id: 1 }, { id: 2 }]));
    const request = { path: '/items', query: { page: '{{ page.number }}' } };
    const reading = read({ request, pagination: { type: 'page_number' } });
    await expect(reading).rejects.toMatchObject({ code: 'endless_pages' });
  });

  test('more pages than are allowed', async () => {
    // A separate path: a late request of the previous test may still arrive.
    server.on('/most', ({ query }) => Response.json([{ id: Number(query.page) }]));
    const request = { path: '/most', query: { page: '{{ page.number }}' } };
    const reading = read({ request, pagination: { type: 'page_number', max_pages: 10 } });
    await expect(reading).rejects.toMatchObject({ code: 'too_many_pages' });
    expect(server.seen.filter(({ path }) => path === '/most')).toHaveLength(10);
  });
});

describe('addresses that an answer names', () => {
  const foreign = startHttpServer();
  afterAll(() => foreign.close());
  const next = { type: 'next_address', address: 'next' };
  const secret = {
    secrets: { key: 'the secret key' },
    authentication: { type: 'api_key', in: 'header', name: 'X-Key', value: '{{ secrets.key }}' },
  };

  test('of another origin get no request and no credentials, unless they are allowed', async () => {
    foreign.on('/more', json({ items: [{ id: 2 }] }));
    server.on('/items', () => Response.json({ items: [{ id: 1 }], next: `${foreign.url}/more` }));
    const stream = { request: { path: '/items' }, records: 'items', pagination: next };
    await expect(read(stream, secret)).rejects.toMatchObject({ code: 'foreign_address' });
    expect(foreign.seen).toEqual([]);
    const { rows } = await read(stream, { ...secret, allowed_origins: [foreign.url] });
    expect(idsOf(rows)).toEqual(['1', '2']);
    expect(foreign.seen[0]?.headers['x-key']).toBe('the secret key');
  });

  test('a redirect to another origin is refused, one within is followed', async () => {
    foreign.seen.length = 0;
    server.on('/items', () => new Response(null, { status: 302, headers: { location: `${foreign.url}/more` } }));
    await expect(read({ request: { path: '/items' } }, secret)).rejects.toMatchObject({ code: 'redirect_refused' });
    expect(foreign.seen).toEqual([]);
    server.on('/items', () => new Response(null, { status: 307, headers: { location: '/moved' } }));
    server.on('/moved', json([{ id: 1 }]));
    expect((await read({ request: { path: '/items' } }, secret)).rows).toEqual([['1']]);
  });
});

test.each([
  ['<https://a/?page=2>; rel="next"', 'https://a/?page=2'],
  ['<https://a/1>; rel=prev, <https://a/3,4;5>; title="a, \\"b; rel=next"; rel=next', 'https://a/3,4;5'],
  ['<https://a/1>; rel="last NEXT"', 'https://a/1'],
  ['<https://a/1>; rel="nextest"', null],
  ['nonsense', null],
  [null, null],
])('the Link header %p', (header, address) => {
  expect(linkTarget(header, 'next')).toBe(address);
});
