import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cell, LogicalType } from '../../server/connectors/contract/connector.ts';
import { parseExactly } from '../../server/connectors/cells/json-line.ts';
import { jsonCell } from '../../server/connectors/cells/json-cells.ts';
import { type Item, makeItems, paged, startHttpServer } from '../support/http-server.ts';
import { ROWS } from './reading.ts';
import type { Place } from './places.ts';

/** Rejects requests without the token. */
const guarded =
  (answer: (request: { headers: Record<string, string>; query: Record<string, string> }) => Response) =>
  (request: { headers: Record<string, string>; query: Record<string, string> }) =>
    request.headers.authorization === 'Bearer the right token'
      ? answer(request)
      : Response.json({ message: 'The token is wrong' }, { status: 401 });

const definition = (base_url: string, path: string, stream: object) =>
  JSON.stringify({
    base_url,
    authentication: { type: 'bearer', token: '{{ secrets.token }}' },
    retries: { max_attempts: 2, base_seconds: 0.001 },
    streams: [
      { name: 'items', primary_key: 'id', ...stream, request: { path, ...(stream as { request?: object }).request } },
    ],
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

/** Windows of days, newest first, with inclusive limits. */
const windows = () =>
  place(
    {
      ...numbered,
      request: {
        query: {
          page: '{{ page.number }}',
          limit: '{{ page.size }}',
          from: '{{ window.start }}',
          to: '{{ window.end }}',
        },
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

type ApiRow = Record<string, unknown>;

/** The cell behind a value of a sent row. */
function cellFrom(value: unknown, type: LogicalType): Cell {
  if (value === null || value === undefined) return null;
  const text = typeof value === 'string' ? value : '';
  if (type === 'binary') return `\\x${Buffer.from(text, 'base64').toString('hex')}`;
  if (type === 'timestamp_tz') return text.replace('T', ' ').replace('Z', '+00');
  return jsonCell(value, type) ?? null;
}

/** A service that accepts rows, deduplicates by batch key, and returns the rows of a table. */
function destination(settings: { format: string; rows_key?: string; batch_rows?: number }) {
  return async (): Promise<Place> => {
    const server = startHttpServer();
    const seen = new Set<string>();
    const tables = new Map<string, ApiRow[]>();
    server.on('/rows/*', ({ headers, body, method, path }) => {
      if (headers['x-api-key'] !== 'the right key')
        return Response.json({ message: 'The key is wrong' }, { status: 401 });
      const key = headers['idempotency-key'] ?? '';
      if (method !== 'POST' || seen.has(key)) return new Response(null, { status: 204 });
      seen.add(key);
      const lines = body.split('\n').filter((line) => line !== '');
      const batch = settings.format === 'jsonl' ? lines.map((line) => parseExactly(line)) : parseExactly(body);
      const rows = settings.format === 'object' ? (batch as Record<string, unknown[]>)[settings.rows_key ?? ''] : batch;
      tables.set(path, [...(tables.get(path) ?? []), ...(rows as ApiRow[])]);
      return Response.json({ taken: (rows as unknown[]).length }, { status: 201 });
    });
    const filesRoot = await mkdtemp(join(tmpdir(), 'data-pipelines-files-'));
    const good = {
      url: `${server.url}/rows/{{ table }}`,
      authentication: 'api_key_header',
      api_key: 'the right key',
      ...settings,
    };
    return {
      filesRoot,
      good,
      bad: {
        'wrong key': { ...good, api_key: 'a wrong key' },
        'nobody listens': { ...good, url: 'http://127.0.0.1:1/rows' },
      },
      leftOpen: async () => server.open(),
      readTable: async (table, columns) =>
        tables.get(`/rows/${table}`)?.map((row) => columns.map(({ name, type }) => cellFrom(row[name], type))) ?? null,
      close: async () => {
        await server.close();
        await rm(filesRoot, { recursive: true, force: true });
      },
    };
  };
}

export const HTTP_FIXTURES = {
  array: destination({ format: 'array' }),
  'object, two rows a batch': destination({ format: 'object', rows_key: 'the "rows"', batch_rows: 2 }),
  'JSON Lines': destination({ format: 'jsonl' }),
};

/** Pages of a thousand, since a time, signed with a token; a typical manual manifest. */
const manifestSource = (base: string, path: string) => `
version: 6.0.0
type: DeclarativeSource
check: { type: CheckStream, stream_names: [items] }
definitions:
  requester:
    type: HttpRequester
    url_base: "${base}"
    authenticator: { type: BearerAuthenticator, api_token: "{{ config['token'] }}" }
    error_handler: { type: DefaultErrorHandler, max_retries: 1, backoff_strategies: [{ type: ConstantBackoffStrategy, backoff_time_in_seconds: 0.001 }] }
streams:
  - type: DeclarativeStream
    name: items
    primary_key: id
    retriever:
      type: SimpleRetriever
      requester: { $ref: "#/definitions/requester", path: "${path}" }
      record_selector: { type: RecordSelector, extractor: { type: DpathExtractor, field_path: [] } }
      paginator:
        type: DefaultPaginator
        pagination_strategy: { type: PageIncrement, page_size: 1000, start_from_page: 1, inject_on_first_request: true }
        page_token_option: { type: RequestOption, inject_into: request_parameter, field_name: page }
        page_size_option: { type: RequestOption, inject_into: request_parameter, field_name: limit }
    incremental_sync:
      type: DatetimeBasedCursor
      cursor_field: at
      datetime_format: "%Y-%m-%dT%H:%M:%SZ"
      start_datetime: "2026-01-01T00:00:00Z"
      end_datetime: "2026-01-01T02:00:00Z"
      step: PT30M
      cursor_granularity: PT0.000001S
      start_time_option: { type: RequestOption, inject_into: request_parameter, field_name: from }
      end_time_option: { type: RequestOption, inject_into: request_parameter, field_name: to }
    schema_loader:
      type: InlineSchemaLoader
      schema: { type: object, properties: { id: { type: integer }, name: { type: [string, "null"] }, at: { type: string, format: date-time } } }
spec:
  type: Spec
  connection_specification: { type: object, required: [token], properties: { token: { type: string, airbyte_secret: true } } }
`;

async function manifestPlace(): Promise<Place> {
  const server = startHttpServer();
  const items = makeItems(ROWS);
  const answer = (request: { query: Record<string, string> }) => {
    const [from, to] = [Date.parse(request.query.from ?? ''), Date.parse(request.query.to ?? '')];
    const found = items.filter(({ at }) => Date.parse(at) >= from && Date.parse(at) <= to + 999);
    return paged.byNumber(found)(request as never) as Response;
  };
  server.on('/items', guarded(answer));
  const filesRoot = await mkdtemp(join(tmpdir(), 'data-pipelines-files-'));
  const secrets = { token: 'the right token' };
  const settings = (base: string, path: string) => ({ manifest: manifestSource(base, path), secrets });
  return {
    filesRoot,
    good: settings(server.url, '/items'),
    bad: {
      'wrong token': { ...settings(server.url, '/items'), secrets: { token: 'a wrong token' } },
      'wrong path': settings(server.url, '/nothing'),
      'nobody listens': settings('http://127.0.0.1:1', '/items'),
      'somebody else in Python': {
        secrets,
        manifest: manifestSource(server.url, '/items').replace(
          'type: DpathExtractor',
          'type: CustomRecordExtractor, class_name: a.B',
        ),
      },
    },
    leftOpen: async () => server.open(),
    close: async () => {
      await server.close();
      await rm(filesRoot, { recursive: true, force: true });
    },
  };
}

export const MANIFEST_FIXTURES = { 'steps of half an hour': manifestPlace };
