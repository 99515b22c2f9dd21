import { DataError } from '../contract/errors.ts';
import { csvRecords, jsonLines, xmlOf } from '../kits/rest/bodies/bodies.ts';
import { createPaginator, type Position } from '../kits/rest/pagination.ts';
import { type Fetched, prefetched, type ReadResponse, slicesAhead } from '../kits/rest/prefetch-pages.ts';
import { type ApiRecord, firstRecords, parseResponse, type RecordPage, recordsOf } from '../kits/rest/records.ts';
import { type Selector, selectorOf } from '../kits/rest/selector.ts';
import type { HttpResponse } from '../kits/rest/send.ts';
import { type Api, pageRequest, streamOf } from './api.ts';
import { cursorScale, requestValue, type Slice, slicesOf } from './datetime-cursor.ts';
import type { StreamDefinition } from './definition.ts';
import { downloadsOf, type Reading } from './jobs.ts';
import { errorJudge } from './errors-in-responses.ts';
import { renderText, type TemplateScope } from '../kits/rest/template.ts';
import type { HttpRequest } from '../kits/rest/request.ts';

/** The pages of a slice of a stream; of a child stream, those of one parent record after the other. */
export async function* readPages(api: Api, stream: StreamDefinition, slice: Slice): AsyncGenerator<RecordPage> {
  const scope = { ...api.scope, ...sliceScope(stream, slice) };
  if (!stream.parent) {
    yield* pagesOf(api, stream, scope);
    return;
  }
  const { stream: name, fields } = stream.parent;
  const parents = readRecords(api, streamOf(api, name));
  const open = (record: ApiRecord) => pagesOf(api, stream, { ...scope, parent: record });
  const { concurrency } = api.definition.rate_limit;
  for await (const { slice: parent, items: pages } of slicesAhead({ slices: parents, open, concurrency })) {
    for await (const page of pages) {
      for (const record of page.records) {
        for (const [column, field] of Object.entries(fields)) record[column] = parent[field] ?? null;
      }
      yield page;
    }
  }
}

/** The pages of a stream from its start to now, whatever was read before. */
export async function* readAllPages(api: Api, stream: StreamDefinition): AsyncGenerator<RecordPage> {
  for (const slice of allSlices(api, stream)) yield* readPages(api, stream, slice);
}

/** The first page of a stream alone, and the request for the next one. */
export async function firstPage(
  api: Api,
  stream: StreamDefinition,
): Promise<{ records: ApiRecord[]; next: HttpRequest | null }> {
  const [slice] = allSlices(api, stream);
  const nothing = { records: [], next: null };
  if (!slice) return nothing;
  const scope: TemplateScope = { ...api.scope, ...sliceScope(stream, slice) };
  const { parent } = stream;
  if (parent) {
    const [record] = await firstRecords(readAllPages(api, streamOf(api, parent.stream)), 1);
    if (!record) return nothing;
    scope.parent = record;
  }
  const first = await firstDownload(api, stream, scope);
  if (!first) return nothing;
  const fetcher = pageFetcher(api, stream, first);
  const { page, next } = (await fetcher.fetch(fetcher.first))();
  for (const record of page.records) {
    for (const [column, field] of Object.entries(parent?.fields ?? {})) record[column] = scope.parent?.[field] ?? null;
  }
  return { records: page.records, next: next && fetcher.requestFor(next) };
}

/** What the pages of a stream without a job, or of the first result of its job, are read from. Null: there is none. */
async function firstDownload(api: Api, stream: StreamDefinition, scope: TemplateScope): Promise<Reading | null> {
  if (!stream.job) return { scope, download: null };
  for await (const download of downloadsOf({ api, stream, job: stream.job, scope })) return download;
  return null;
}

async function* readRecords(api: Api, stream: StreamDefinition): AsyncGenerator<ApiRecord> {
  for await (const page of readAllPages(api, stream)) yield* page.records;
}

/** The slices of a read from the start to now. */
export function allSlices(api: Api, stream: StreamDefinition): Iterable<Slice> {
  const { incremental } = stream;
  if (!incremental) return [{ start: null, end: null, is_last: true }];
  const scale = cursorScale(incremental, 'string');
  const first = incremental.start === undefined ? null : renderText(incremental.start, api.scope);
  return slicesOf({ incremental, scale, first, state: null, window: null, now: api.ctx.now() });
}

function sliceScope({ incremental }: StreamDefinition, { start, end }: Slice): TemplateScope {
  if (!incremental) return {};
  const from = requestValue(start, 'start', incremental);
  return { cursor: from, window: { start: from, end: requestValue(end, 'end', incremental) } };
}

/** The pages of one request, or of all results of a job. */
async function* pagesOf(api: Api, stream: StreamDefinition, scope: TemplateScope): AsyncGenerator<RecordPage> {
  if (!stream.job) yield* requestedPages(api, stream, { scope, download: null });
  else {
    for await (const reading of downloadsOf({ api, stream, job: stream.job, scope }))
      yield* requestedPages(api, stream, reading);
  }
}

/** The next pages are fetched while the consumer works on the current one. */
function requestedPages(api: Api, stream: StreamDefinition, reading: Reading): AsyncGenerator<RecordPage> {
  const { requests_per_second, concurrency } = api.definition.rate_limit;
  // Where requests are limited, none should be spent on a page that may not exist.
  const max_ahead = requests_per_second === undefined ? concurrency : 1;
  return prefetched({ ...pageFetcher(api, stream, reading), max_ahead, signal: api.ctx.signal });
}

const NO_REQUEST = { method: 'GET', headers: { accept: '*/*' }, body: null };

function pageFetcher(api: Api, stream: StreamDefinition, { scope, download }: Reading) {
  const { pagination } = stream;
  const select = selectorOf(stream.records);
  const paginator = createPaginator(pagination, api.origins);
  const ends = 'end_statuses' in pagination ? pagination.end_statuses : [];
  const judge = errorJudge(api.definition, stream);
  const guard = api.guards.of({
    name: stream.name,
    path: `"${stream.records}"`,
    missing_records: stream.missing_records,
    redact: (text) => api.client.redact(text),
    remedy: 'Correct records in the definition, or set missing_records to empty where the service omits an empty list.',
  });
  const read = (position: Position, response: HttpResponse): Fetched<RecordPage, Position> => {
    const page: RecordPage = { records: [], bytes: response.bytes, index: position.index };
    if (ends.includes(response.status)) return { page, next: null };
    const json = bodyOf(stream, response);
    if (judge.ignores(json)) return { page, next: null };
    const found = selectFrom(stream, select, json);
    const records = recordsOf(found);
    const items = stream.items ? itemsOf(stream, stream.items, records) : { found, records };
    guard.check({ json, found: items.found, isWhole: stream.records === '@' && !stream.items, url: response.url });
    page.records = items.records;
    return { page, next: paginator.next(position, { response, json, records: records.length }) };
  };
  const requestFor = (position: Position): HttpRequest => {
    const at = { scope, position, request: stream.job?.download };
    if (download && !position.address) return { ...NO_REQUEST, url: download, may_leave: true };
    return { ...pageRequest(api, stream, at), ...(stream.job && { may_leave: true }) };
  };
  const fetch = async (position: Position): Promise<ReadResponse<RecordPage, Position>> => {
    const request = requestFor(position);
    const response = await api.client.send(request, { statuses: ends, errorIn: judge.errorIn });
    return Object.assign(() => read(position, response), {
      foresee: () => paginator.foresee(position, response),
    });
  };
  return { first: paginator.first, fetch, predict: paginator.predict, requestFor };
}

/** A response as the value that selectors look into. */
function bodyOf({ name, format, delimiter }: StreamDefinition, response: HttpResponse): unknown {
  const place = `${name}: the response of ${response.url.host}${response.url.pathname}`;
  if (format === 'csv') return csvRecords({ delimiter }, response.text, place);
  if (format === 'json_lines') return jsonLines(response.text, place);
  if (format === 'json') return parseResponse(name, response);
  return response.text.trim() === '' ? null : xmlOf(response.text, place);
}

/** The items of a list in each record, with fields of the record. Found: undefined when no record has the list. */
function itemsOf(
  stream: StreamDefinition,
  { path, fields }: NonNullable<StreamDefinition['items']>,
  parents: ApiRecord[],
): { found: unknown; records: ApiRecord[] } {
  const select = selectorOf(path);
  const lists = parents.map((parent) => selectFrom(stream, select, parent));
  const records = lists.flatMap((list, at) =>
    recordsOf(list).map((item) => {
      const parent = parents[at] ?? {};
      const taken = Object.entries(fields).map(([column, field]) => [column, parent[field] ?? null]);
      return { ...item, ...Object.fromEntries(taken) } as ApiRecord;
    }),
  );
  const isMissing = parents.length > 0 && lists.every((list) => list === undefined);
  return { found: isMissing ? undefined : records, records };
}

function selectFrom(stream: StreamDefinition, select: Selector, json: unknown): unknown {
  try {
    return select(json);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new DataError('selector_failed', `${stream.name}: the records selector failed: ${message}`);
  }
}
