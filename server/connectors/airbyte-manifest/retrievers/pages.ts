import { prefetched, type ReadResponse } from '../../kits/rest/prefetch-pages.ts';
import type { RecordPage } from '../../kits/rest/records.ts';
import type { DeclarativeStream } from '../components/stream-components.ts';
import { decode } from '../decoders/decoders.ts';
import { createPaginator, type Position } from '../pagination/paginator.ts';
import type { Partition } from '../partitions/partition-routers.ts';
import { extract, select } from '../extractors/record-selector.ts';
import { buildRequest, type Injection } from '../requests/build-request.ts';
import { clientOf, type Runtime } from '../runtime/runtime.ts';
import type { DatetimeCursor, Interval } from '../incremental/datetime-cursor.ts';
import type { Scope } from '../interpolation/template.ts';

/** A partition with an interval of its cursor: what one sequence of pages is for. */
export interface StreamSlice {
  /** Of the partition. */
  key: string;
  partition: Partition;
  interval: Interval | null;
  /** Rows before it have been read, in microseconds; null: none. */
  from: number | null;
}

export interface Page extends RecordPage {
  slice: StreamSlice;
}

/** The slice as templates see it: the values of the partition and of the interval. */
function sliceScope({ partition, interval }: StreamSlice, cursor: DatetimeCursor | null): Scope {
  const times = interval && cursor ? cursor.interval(interval) : {};
  const slice = { ...partition.values, ...times };
  const hidden = { extra_fields: partition.extra, partition: partition.values, cursor_slice: times };
  for (const [name, value] of Object.entries(hidden)) {
    // Not enumerable, so that an empty slice counts as empty, as it does with Airbyte.
    if (!Object.hasOwn(slice, name)) Object.defineProperty(slice, name, { value, enumerable: false });
  }
  return { stream_slice: slice, stream_interval: slice, stream_partition: slice };
}

/** The pages of one slice. The next one is fetched while the consumer works on the current one. */
export function pagesOf(
  runtime: Runtime,
  stream: DeclarativeStream,
  slice: StreamSlice,
  cursor: DatetimeCursor | null,
): AsyncGenerator<Page> {
  const { templates, ctx } = runtime;
  const { retriever, transformations } = stream;
  const { requester, record_selector: selector } = retriever;
  const decoder = retriever.decoder ?? selector.extractor.decoder;
  const sliced = { ...runtime.scope, ...sliceScope(slice, cursor) };
  const requestScope = { ...sliced, parameters: requester.$parameters ?? {} };
  const selecting = {
    selector,
    transformations,
    templates,
    scope: { ...sliced, parameters: selector.extractor.$parameters ?? {} },
  };
  const { max_pages } = ctx.config;
  const paginator = createPaginator(retriever.paginator, { templates, scope: requestScope, max_pages });
  const injected = injectionsOf(stream, slice, cursor);
  const client = clientOf(runtime, requester);
  const fetch = async (position: Position): Promise<ReadResponse<Page, Position>> => {
    const isFirst = position.token === null || position.index === 0;
    const withoutSlice = retriever.ignore_stream_slicer_parameters_on_paginated_requests && !isFirst;
    const scope = { ...requestScope, next_page_token: isFirst ? null : { next_page_token: position.token } };
    const request = buildRequest({
      requester,
      templates,
      scope,
      injections: [...paginator.injections(position), ...(withoutSlice ? [] : injected)],
      address: paginator.address(position),
      origins: runtime.origins,
    });
    const handler = requester.error_handler;
    const seen = await client.send({ request, handler, interpolation: { templates, scope } });
    const page: Page = { records: [], bytes: seen?.response.bytes ?? 0, index: position.index, slice };
    if (!seen) return () => ({ page, next: null });
    const { bodies, response } = decode(decoder, stream.name, seen.response);
    const found = extract(selecting, bodies);
    const count = found.length;
    // The paginator needs the last record as the service sent it, even when the filter drops it.
    const last = found.at(-1) ?? null;
    page.records = select(selecting, found);
    const decodedPage = { seen: { response: seen.response, json: () => response }, count, last };
    const next = reachesKnown(page, cursor) ? null : paginator.next(position, decodedPage);
    return () => ({ page, next });
  };
  return prefetched({ first: paginator.first, fetch, signal: ctx.signal });
}

/** A data feed returns the newest records first: everything older than the last read is known. */
function reachesKnown({ records, slice: { from } }: Page, cursor: DatetimeCursor | null): boolean {
  if (cursor?.definition.is_data_feed !== true || from === null) return false;
  const limit = cursor.textOf(from);
  return records.some((record) => {
    const normal = cursor.normal(record[cursor.field]);
    return typeof normal === 'string' && normal < limit;
  });
}

function injectionsOf(
  { incremental_sync: definition }: DeclarativeStream,
  slice: StreamSlice,
  cursor: DatetimeCursor | null,
): Injection[] {
  const injections = [...slice.partition.injections];
  if (!definition || !slice.interval || !cursor) return injections;
  const [start, end] = Object.values(cursor.interval(slice.interval));
  if (definition.start_time_option) injections.push({ option: definition.start_time_option, value: start });
  if (definition.end_time_option) injections.push({ option: definition.end_time_option, value: end });
  return injections;
}
