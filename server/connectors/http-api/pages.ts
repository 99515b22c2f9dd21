import { DataError } from '../contract/errors.ts';
import { rawNumber } from '../cells/json-line.ts';
import { type Api, callOf, streamOf } from './api.ts';
import type { StreamDefinition } from './definition.ts';
import type { Answer } from '../kits/rest/send.ts';
import { ahead, type Fetched, type Look, parseAnswer, prefetched } from '../kits/rest/prefetch-pages.ts';
import { createPaginator, type Position } from '../kits/rest/pagination.ts';
import { type Selector, selectorOf } from '../kits/rest/selector.ts';
import { cursorScale, requestValue, type Slice, slicesOf } from './datetime-cursor.ts';
import { renderText, type TemplateScope } from './template.ts';

export type ApiRecord = Record<string, unknown>;

export interface Page {
  records: ApiRecord[];
  /** Size of the answer. */
  bytes: number;
  /** Pages before this one, of the same request. */
  index: number;
}

/** The pages of a slice of a stream, those of each of its parents one after the other. */
export async function* readPages(api: Api, stream: StreamDefinition, slice: Slice): AsyncGenerator<Page> {
  const scope = { ...api.scope, ...sliceScope(stream, slice) };
  if (!stream.parent) {
    yield* pagesOf(api, stream, scope);
    return;
  }
  const { stream: name, fields } = stream.parent;
  const parents = readRecords(api, streamOf(api, name));
  const open = (record: ApiRecord) => pagesOf(api, stream, { ...scope, parent: record });
  const { concurrency } = api.definition.rate_limit;
  for await (const { of: parent, items: pages } of ahead({ parts: parents, open, concurrency })) {
    for await (const page of pages) {
      for (const record of page.records) {
        for (const [column, field] of Object.entries(fields)) record[column] = parent[field] ?? null;
      }
      yield page;
    }
  }
}

/** All records of a stream, wherever its cursor is. */
async function* readRecords(api: Api, stream: StreamDefinition): AsyncGenerator<ApiRecord> {
  for (const slice of wholeOf(api, stream)) {
    for await (const page of readPages(api, stream, slice)) yield* page.records;
  }
}

/** The slices of a read from the beginning to now. */
export function wholeOf(api: Api, stream: StreamDefinition): Iterable<Slice> {
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

/** One request's pages; the next one is on its way while the reader is busy with this one. */
const pagesOf = (api: Api, stream: StreamDefinition, scope: TemplateScope): AsyncGenerator<Page> => {
  const { requests_per_second, concurrency } = api.definition.rate_limit;
  // Who counts requests is not asked for one that may be in vain.
  const most = requests_per_second === undefined ? concurrency : 1;
  return prefetched({ ...pageFetcher(api, stream, scope), most, signal: api.ctx.signal });
};

function pageFetcher(api: Api, stream: StreamDefinition, scope: TemplateScope) {
  const { pagination } = stream;
  const select = selectorOf(stream.records);
  const paginator = createPaginator(pagination, api.origins);
  const ends = 'end_statuses' in pagination ? pagination.end_statuses : [];
  const look = (position: Position, answer: Answer): Fetched<Page, Position> => {
    const page: Page = { records: [], bytes: answer.bytes, index: position.index };
    if (ends.includes(answer.status)) return { page, next: null };
    const json = parseAnswer(stream.name, answer);
    page.records = recordsIn(stream, select, json);
    return { page, next: paginator.next(position, { answer, json, records: page.records.length }) };
  };
  const fetch = async (position: Position): Promise<Look<Page, Position>> => {
    const answer = await api.client.send(callOf(api, stream, { scope, position }), ends);
    return () => look(position, answer);
  };
  return { first: paginator.first, fetch, likely: paginator.likely };
}

/** A list is its records, one object a record by itself; values that are no objects become `{ value }`. */
function recordsIn(stream: StreamDefinition, select: Selector, json: unknown): ApiRecord[] {
  let found: unknown;
  try {
    found = select(json);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new DataError('selector_failed', `${stream.name}: the records cannot be selected: ${message}`);
  }
  if (found === null || found === undefined) return [];
  const items = Array.isArray(found) ? found : [found];
  return items.every(isRecord) ? items : items.map((item: unknown) => (isRecord(item) ? item : { value: item }));
}

const isRecord = (item: unknown): item is ApiRecord =>
  typeof item === 'object' && item !== null && !Array.isArray(item) && rawNumber(item) === null;
