import { type Look, prefetched } from '../../kits/rest/prefetch-pages.ts';
import type { DeclarativeStream } from '../components/stream-components.ts';
import { decoded } from '../decoders/decode.ts';
import { createPager, type Position } from './paginator.ts';
import type { Partition } from '../partitions/partitions.ts';
import { extract, type ManifestRecord, select } from '../extractors/records.ts';
import { buildCall, type Injection } from '../requests/request.ts';
import { clientOf, type Runtime } from '../runtime.ts';
import type { Cursor, Interval } from '../incremental/datetime-cursor.ts';
import type { Scope } from '../interpolation/template.ts';

/** What one sequence of pages is of. */
export interface Part {
  key: string;
  partition: Partition;
  interval: Interval | null;
  /** Rows before it have been read already; null: none. In microseconds. */
  from: number | null;
}

export interface Page {
  records: ManifestRecord[];
  bytes: number;
  /** Pages before this one, of the same part. */
  index: number;
  part: Part;
}

/** What templates see as the slice: its own entries are those of the partition and the interval. */
function sliceOf({ partition, interval }: Part, cursor: Cursor | null): Scope {
  const times = interval && cursor ? cursor.interval(interval) : {};
  const slice = { ...partition.values, ...times };
  const hidden = { extra_fields: partition.extra, partition: partition.values, cursor_slice: times };
  for (const [name, value] of Object.entries(hidden)) {
    // Not counted, so that a slice of nothing is as empty as it is with Airbyte.
    if (!Object.hasOwn(slice, name)) Object.defineProperty(slice, name, { value, enumerable: false });
  }
  return { stream_slice: slice, stream_interval: slice, stream_partition: slice };
}

/** The pages of one part; the next one is on its way while the reader is busy with this one. */
export function pagesOf(
  runtime: Runtime,
  stream: DeclarativeStream,
  part: Part,
  cursor: Cursor | null,
): AsyncGenerator<Page> {
  const { templates, ctx } = runtime;
  const { retriever, transformations } = stream;
  const { requester, record_selector: selector } = retriever;
  const decoder = retriever.decoder ?? selector.extractor.decoder;
  const slice = { ...runtime.scope, ...sliceOf(part, cursor) };
  const asked = { ...slice, parameters: requester.$parameters ?? {} };
  const selecting = {
    selector,
    transformations,
    templates,
    scope: { ...slice, parameters: selector.extractor.$parameters ?? {} },
  };
  const pager = createPager(retriever.paginator, { templates, scope: asked, max_pages: ctx.config.max_pages });
  const sliced = injectionsOf(stream, part, cursor);
  const client = clientOf(runtime, requester);
  const fetch = async (position: Position): Promise<Look<Page, Position>> => {
    const isFirst = position.token === null || position.index === 0;
    const leavesOut = retriever.ignore_stream_slicer_parameters_on_paginated_requests && !isFirst;
    const scope = { ...asked, next_page_token: isFirst ? null : { next_page_token: position.token } };
    const call = buildCall({
      requester,
      templates,
      scope,
      injections: [...pager.injections(position), ...(leavesOut ? [] : sliced)],
      address: pager.address(position),
      origins: runtime.origins,
    });
    const heard = await client.send({ call, handler: requester.error_handler, judging: { templates, scope } });
    const page: Page = { records: [], bytes: heard?.answer.bytes ?? 0, index: position.index, part };
    if (!heard) return () => ({ page, next: null });
    const { bodies, response } = decoded(decoder, stream.name, heard.answer);
    const found = extract(selecting, bodies);
    const count = found.length;
    // What the paginator looks at is the record as it came, whatever becomes of it.
    const last = found.at(-1) ?? null;
    page.records = select(selecting, found);
    const seen = { heard: { answer: heard.answer, json: () => response }, count, last };
    const isOver =
      cursor?.definition.is_data_feed === true && part.from !== null && reachesBelow(page.records, cursor, part.from);
    const next = isOver ? null : pager.next(position, seen);
    return () => ({ page, next });
  };
  return prefetched({ first: pager.first, fetch, signal: ctx.signal });
}

/** A feed gives the newest first: what is older than the last read has been read. */
function reachesBelow(records: ManifestRecord[], cursor: Cursor, from: number): boolean {
  const limit = cursor.textOf(from);
  return records.some((record) => {
    const normal = cursor.normal(record[cursor.field]);
    return typeof normal === 'string' && normal < limit;
  });
}

function injectionsOf(
  { incremental_sync: definition }: DeclarativeStream,
  part: Part,
  cursor: Cursor | null,
): Injection[] {
  const injections = [...part.partition.injections];
  if (!definition || !part.interval || !cursor) return injections;
  const [start, end] = Object.values(cursor.interval(part.interval));
  if (definition.start_time_option) injections.push({ option: definition.start_time_option, value: start });
  if (definition.end_time_option) injections.push({ option: definition.end_time_option, value: end });
  return injections;
}
