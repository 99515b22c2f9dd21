import { prefetched, type ReadResponse } from '../../kits/rest/prefetch-pages.ts';
import type { ApiRecord, RecordPage } from '../../kits/rest/records.ts';
import type { DeclarativeStream, Job, QueryProperties, Retriever } from '../components/stream-components.ts';
import { decode } from '../decoders/decoders.ts';
import { createPaginator, type ManifestPaginator, type Position } from '../pagination/paginator.ts';
import { type Partition, WHOLE } from '../partitions/partition-routers.ts';
import {
  extract,
  extractBy,
  type Extracted,
  recordPath,
  select,
  type Selected,
  type Selecting,
} from '../extractors/record-selector.ts';
import { buildRequest, type Injection } from '../requests/build-request.ts';
import type { ManifestClient } from '../requests/client.ts';
import { pythonResponse, type SeenResponse } from '../requests/error-handling.ts';
import { downloadsOf } from './jobs.ts';
import { chunksOf, mergedByKey, namesIn } from './properties.ts';
import { PaginationResets } from './pagination-resets.ts';
import { inPython } from '../python/session.ts';
import { customOptions, sendByPython } from '../requests/python-requester.ts';
import { recordsByPython } from './by-python.ts';
import { clientOf, type Runtime } from '../runtime/runtime.ts';
import type { Interval, StreamCursor } from '../incremental/stream-cursor.ts';
import type { Scope } from '../interpolation/template.ts';
import { transform } from '../transformations/transformations.ts';
import type { HttpRequest } from '../../kits/rest/request.ts';

/** A partition with an interval of its cursor: what one sequence of pages is for. */
export interface StreamSlice {
  /** Of the partition. */
  key: string;
  partition: Partition;
  interval: Interval | null;
  /** Rows before it are not of this read, in microseconds; null: the service returns none of them. */
  floor: number | null;
  /** The cursor that an earlier read reached, in the form that sorts. */
  reached: string | null;
}

export interface Page extends RecordPage {
  slice: StreamSlice;
  /** Pagination restarts after it. */
  isReset?: boolean;
}

/** The slice as templates see it: the values of the partition and of the interval. */
export function sliceScope({ partition, interval, reached }: StreamSlice, cursor: StreamCursor | null): Scope {
  const times = interval && cursor ? cursor.interval(interval) : {};
  const slice = { ...partition.values, ...times };
  const hidden = { extra_fields: partition.extra, partition: partition.values, cursor_slice: times };
  for (const [name, value] of Object.entries(hidden)) {
    // Not enumerable, so that an empty slice counts as empty, as it does with Airbyte.
    if (!Object.hasOwn(slice, name)) Object.defineProperty(slice, name, { value, enumerable: false });
  }
  const stream_state = cursor?.stateOf(reached) ?? {};
  return { stream_slice: slice, stream_interval: slice, stream_partition: slice, stream_state };
}

/** The pages of one slice. The next one is fetched while the consumer works on the current one. */
export function pagesOf(
  runtime: Runtime,
  stream: DeclarativeStream,
  slice: StreamSlice,
  cursor: StreamCursor | null,
): AsyncGenerator<Page> {
  const scope = { ...runtime.scope, ...sliceScope(slice, cursor) };
  const reading = { runtime, stream, slice, cursor, scope };
  return stream.retriever.job ? pagesOfJob(reading, stream.retriever.job) : pagesIn(reading, runtime.origins);
}

/** The pages of all downloads of a job. */
async function* pagesOfJob(reading: PageReading, job: Job): AsyncGenerator<Page> {
  const { runtime, stream, scope } = reading;
  for await (const { more, origins } of downloadsOf(
    { runtime, name: stream.name, retriever: stream.retriever, scope },
    job,
  ))
    yield* pagesIn({ ...reading, scope: { ...scope, ...more } }, origins);
}

/** The pages of a slice, which may restart in a smaller one. */
async function* pagesIn(reading: PageReading, origins: Set<string>): AsyncGenerator<Page> {
  const { stream, slice, cursor } = reading;
  const resets = new PaginationResets(stream.retriever.pagination_reset, cursor, stream.name);
  for (let rest: StreamSlice | null = slice; rest; ) {
    const scope = rest === slice ? reading.scope : { ...reading.scope, ...sliceScope(rest, cursor) };
    let isReset = false;
    for await (const page of pagesFrom({ ...reading, slice: rest, scope, resets }, origins)) {
      isReset = page.isReset === true;
      yield page;
    }
    if (!isReset) return;
    const start = resets.restart(rest.interval?.start ?? null);
    rest = { ...rest, interval: rest.interval && start !== null ? { ...rest.interval, start } : rest.interval };
  }
}

async function* pagesFrom(reading: PageReading & Resetting, origins: Set<string>): AsyncGenerator<Page> {
  const { runtime, stream, slice } = reading;
  const { templates, ctx } = runtime;
  const { retriever } = stream;
  const { requester } = retriever;
  const requestScope = { ...reading.scope, parameters: requester.$parameters ?? {} };
  const { max_pages } = ctx.config;
  const client = clientOf(runtime, requester);
  const reader = pageReader(reading, client);
  const paging = { templates, scope: requestScope, max_pages, python: runtime.python };
  const paginator = await createPaginator(retriever.paginator, paging);
  const request = async (position: Position): Promise<SeenResponse[]> => {
    const isFirst = position.token === null || position.index === 0;
    if (position.index === 0 && 'child' in slice.partition) return [childResponse(slice.partition.child)];
    const withoutSlice = retriever.ignore_stream_slicer_parameters_on_paginated_requests && !isFirst;
    const scope = { ...requestScope, next_page_token: isFirst ? null : { next_page_token: position.token } };
    const answers: SeenResponse[] = [];
    for (const more of await propertyScopes(reading)) {
      const own = { ...scope, ...more.scope };
      const injected = retriever.job || withoutSlice ? [] : await injectionsOf(reading, own);
      const page = {
        requester,
        templates,
        scope: own,
        injections: [...paginator.injections(position), ...injected, ...more.injections],
        address: paginator.address(position),
        origins,
      };
      const handler = requester.error_handler;
      const send = async (sent: HttpRequest) =>
        await client.send({ request: sent, handler, interpolation: { templates, scope: own } });
      answers.push(requester.python ? await sendByPython(page, runtime.python, send) : await send(buildRequest(page)));
    }
    return answers;
  };
  if (retriever.python) {
    const { partOf } = reader;
    const isOld = (last: ApiRecord | null) => isKnown(last, slice, reading.cursor);
    const own = { component: retriever.python, python: inPython(runtime.python), scope: requestScope, paginator };
    for await (const found of recordsByPython({ ...own, request, partOf, isKnown: isOld }))
      yield { ...found, index: 0, slice };
    return;
  }
  const fetch = async (position: Position) => reader.page(await request(position), position, paginator);
  yield* prefetched({ first: paginator.first, fetch, signal: ctx.signal });
}

/** What the requests for one page add: the properties that they ask for. */
async function propertyScopes({
  runtime,
  stream,
  scope,
}: PageReading): Promise<{ scope: Scope; injections: Injection[] }[]> {
  const { query } = stream.retriever;
  if (!query) return [{ scope: {}, injections: [] }];
  const properties = await propertiesOf(runtime, stream.name, query);
  return chunksOf(query, properties, selectedOf(runtime, stream.name, query)).map((query_properties) => {
    const slice = scope.stream_slice as { extra_fields?: Record<string, unknown> };
    const sliced = { ...slice, extra_fields: { ...slice.extra_fields, query_properties } };
    const option = { type: 'RequestOption', inject_into: 'request_parameter', field_name: query.parameter } as const;
    const injections = query.parameter === undefined ? [] : [{ option, value: query_properties.join(',') }];
    return { scope: { stream_slice: sliced, stream_partition: sliced, stream_interval: sliced }, injections };
  });
}

/** The properties that the read needs, under the names that the service has for them; null: all. */
function selectedOf(
  { selected, templates, scope }: Runtime,
  name: string,
  { property_selector: selector }: QueryProperties,
): ReadonlySet<string> | null {
  const names = selected.get(name);
  if (!selector || !names) return null;
  const known: ApiRecord = Object.fromEntries(Array.from(names, (one) => [one, {}]));
  return new Set(Object.keys(transform(known, { transformations: selector.transformations, templates, scope })));
}

function propertiesOf(runtime: Runtime, name: string, { property_list: list }: QueryProperties): Promise<string[]> {
  if (Array.isArray(list)) return Promise.resolve(list);
  const known = runtime.properties.get(list) ?? listedProperties(runtime, name, list);
  runtime.properties.set(list, known);
  return known;
}

async function listedProperties(
  runtime: Runtime,
  name: string,
  { retriever, property_field_path }: Exclude<QueryProperties['property_list'], string[]>,
): Promise<string[]> {
  const path = property_field_path.map((part) => runtime.templates.text(part, runtime.scope) ?? part);
  const stream: DeclarativeStream = {
    type: 'DeclarativeStream',
    name: `${name}, properties`,
    retriever,
    schema_loader: [],
    transformations: [],
  };
  const slice = { key: '', partition: WHOLE, interval: null, floor: null, reached: null };
  const names: string[] = [];
  for await (const { records } of pagesOf(runtime, stream, slice, null)) names.push(...namesIn(records, path));
  return names;
}

/** The first page of a child that its parent's record has, as if the service had returned it. */
function childResponse(child: unknown): SeenResponse {
  const text = JSON.stringify(child);
  const url = new URL('http://parent.invalid/');
  return {
    response: { status: 200, headers: new Headers(), text, bytes: text.length, url },
    json: () => child,
    isIgnored: false,
  };
}

interface Resetting {
  resets: PaginationResets;
}

interface PageReading {
  runtime: Runtime;
  stream: DeclarativeStream;
  slice: StreamSlice;
  cursor: StreamCursor | null;
  scope: Scope;
}

function selectingOf({ runtime, stream, scope }: PageReading): Selecting {
  const { record_selector: selector } = stream.retriever;
  return {
    selector,
    transformations: stream.transformations,
    templates: runtime.templates,
    scope: { ...scope, parameters: ('$parameters' in selector.extractor && selector.extractor.$parameters) || {} },
    python: runtime.python,
    schema: () => runtime.schemaOf(stream),
  };
}

/** Reads the records of a response. As with Airbyte, a response that is not a success has none, and ends the pages. */
function pageReader(reading: PageReading & Resetting, client: ManifestClient) {
  const { runtime, stream, slice, cursor, resets } = reading;
  const { decoder } = stream.retriever;
  const selecting = selectingOf(reading);
  const path = recordPath(selecting);
  const guard = runtime.guards.of({
    name: stream.name,
    path: `"${path.join('.')}"`,
    missing_records: runtime.ctx.config.missing_records,
    remedy: 'Update the manifest, or set missing_records to empty where the service omits an empty list.',
    redact: (text) => client.redact(text),
  });
  const partOf = async (seen: SeenResponse, { isOfParent = false, transforms = true } = {}): Promise<Part | null> => {
    const { status, url } = seen.response;
    if (seen.resets) return null;
    if (seen.isIgnored || status >= 400) noteIgnored(runtime, stream.name, status);
    if (status >= 400) return null;
    const { records, found, json, response } = await recordsIn(selecting, decoder, stream.name, seen);
    if (!seen.isIgnored && !isOfParent) guard.check({ json, found, isWhole: path.length === 0, url });
    const transformations = transforms ? stream.transformations : [];
    return { ...(await select({ ...selecting, transformations }, records)), count: records.length, response };
  };
  const pageOf = async (
    answers: SeenResponse[],
    position: Position,
    paginator: ManifestPaginator,
  ): Promise<ReadResponse<Page, Position>> => {
    const isOfParent = position.index === 0 && 'child' in slice.partition;
    const parts: (Part | null)[] = [];
    for (const seen of answers) parts.push(await partOf(seen, { isOfParent }));
    const whole = together(stream.retriever, parts);
    const bytes = answers.reduce((sum, { response }) => sum + response.bytes, 0);
    const isReset = resets.observe(whole.records) || answers.some((one) => one.resets);
    const page: Page = { records: whole.records, bytes, index: position.index, slice, isReset };
    if (isReset) return () => ({ page, next: null });
    const [seen, part] = [answers.at(-1), parts.at(-1)];
    if (!seen || !part) return () => ({ page, next: null });
    const decoded = { seen: { ...seen, json: () => part.response }, count: whole.count, last: whole.last };
    const next = isKnown(whole.last, slice, cursor) ? null : await paginator.next(position, decoded);
    return () => ({ page, next });
  };
  return { partOf, page: pageOf };
}

/** What the extractor finds in a response. One in Python gets it as it is. */
async function recordsIn(
  selecting: Selecting,
  decoder: Retriever['decoder'],
  name: string,
  seen: SeenResponse,
): Promise<Extracted & { json: unknown; response: unknown }> {
  const { extractor } = selecting.selector;
  if (extractor.type === 'PythonExtractor') {
    const json = seen.json();
    return {
      ...(await extractBy(selecting, extractor.component, pythonResponse(seen.response))),
      json,
      response: json,
    };
  }
  const { bodies, response } = decode(decoder ?? extractor.decoder, name, seen.response);
  return { ...extract(selecting, bodies), json: bodies[0], response };
}

interface Part extends Selected {
  /** Before the record filter. */
  count: number;
  /** What templates see as the response. */
  response: unknown;
}

/** The records of all responses for one page. */
function together({ query }: Retriever, parts: (Part | null)[]): Pick<Part, 'records' | 'last' | 'count'> {
  const present = parts.filter((part) => part !== null);
  const [first] = present;
  if (present.length < 2) return first ?? { records: [], last: null, count: 0 };
  const key = query?.property_chunking?.record_merge_strategy?.key ?? 'id';
  const records = mergedByKey(
    key,
    present.flatMap((part) => part.records),
  );
  return { records, last: records.at(-1) ?? null, count: Math.max(...present.map(({ count }) => count)) };
}

const noteIgnored = ({ notices }: Runtime, stream: string, status: number) =>
  notices.note(`${stream} ${status}`, {
    code: 'responses_ignored',
    message: (count) => `${stream}: ${count} responses with status ${status} are ignored, as the manifest says`,
  });

/** A data feed returns the newest records first: after a last record that is older than this read, all are known. */
function isKnown(last: ApiRecord | null, { floor }: StreamSlice, cursor: StreamCursor | null): boolean {
  if (!cursor?.isFeed || floor === null || last === null) return false;
  const normal = cursor.normal(last[cursor.field]);
  return typeof normal === 'string' && normal < cursor.textOf(floor);
}

/** What the slice adds to a request. */
async function injectionsOf({ runtime, slice, cursor }: PageReading, scope: Scope): Promise<Injection[]> {
  const { injections } = slice.partition;
  if (!slice.interval || !cursor) return injections;
  const own = cursor.python
    ? await customOptions(cursor.python, runtime.python, scope)
    : cursor.injections(slice.interval);
  return [...injections, ...own];
}
