import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Item, makeItems, paged, startHttpServer } from '../support/http-server.ts';
import type { Place } from './fixtures.ts';

const ROWS = 12_345;

/** Refuses whoever does not bring the token. */
const guarded = (answer: (request: { headers: Record<string, string>; query: Record<string, string> }) => Response) =>
  (request: { headers: Record<string, string>; query: Record<string, string> }) =>
    request.headers.authorization === 'Bearer the right token'
      ? answer(request)
      : Response.json({ message: 'The token is wrong' }, { status: 401 });

const definition = (base_url: string, path: string, stream: object) =>
  JSON.stringify({
    base_url,
    authentication: { type: 'bearer', token: '{{ secrets.token }}' },
    retries: { max_attempts: 2, base_seconds: 0.001 },
    streams: [{ name: 'items', primary_key: 'id', ...stream, request: { path, ...(stream as { request?: object }).request } }],
  });

async function place(stream: object, answer: (items: Item[]) => Parameters<typeof guarded>[0]): Promise<Place> {
  const server = startHttpServer();
  server.on('/items', guarded(answer(makeItems(ROWS))));
  const filesRoot = await mkdtemp(join(tmpdir(), 'data-pipelines-files-'));
  const secrets = { token: 'the right token' };
  const settings = (base: string, path: string) => ({ definition: definition(base, path, stream), secrets });
  return {
    filesRoot,
    good: settings(server.url, '/items'),
    bad: {
      'wrong token': { ...settings(server.url, '/items'), secrets: { token: 'a wrong token' } },
      'wrong path': settings(server.url, '/nothing'),
      'nobody listens': settings('http://127.0.0.1:1', '/items'),
    },
    leftOpen: async () => server.open(),
    close: async () => {
      await server.close();
      await rm(filesRoot, { recursive: true, force: true });
    },
  };
}

const numbered = { pagination: { type: 'page_number', size: 1000 } };

/** Everything since a time, in ascending order, by pages. */
const ascending = () =>
  place(
    {
      ...numbered,
      request: { query: { page: '{{ page.number }}', limit: '{{ page.size }}', since: '{{ cursor }}' } },
      incremental: { cursor_field: 'at', order: 'ascending' },
    },
    (items) => (request) => {
      const { since } = request.query;
      const found = since === undefined ? items : items.filter(({ at }) => Date.parse(at) >= Date.parse(since));
      return paged.byNumber(found)(request as never) as Response;
    },
  );

/** Windows of days, newest first, limits taken as days that belong to the window. */
const windows = () =>
  place(
    {
      ...numbered,
      request: {
        query: { page: '{{ page.number }}', limit: '{{ page.size }}', from: '{{ window.start }}', to: '{{ window.end }}' },
      },
      incremental: { cursor_field: 'at', format: 'date', step_days: 30, start: '2025-12-01', end_inclusive: true },
    },
    (items) => (request) => {
      const { from = '', to = '' } = request.query;
      const found = items.filter(({ at }) => at.slice(0, 10) >= from && at.slice(0, 10) <= to).toReversed();
      return paged.byNumber(found)(request as never) as Response;
    },
  );

export const HTTP_API_FIXTURES = { 'ascending by time': ascending, 'windows of days': windows };
