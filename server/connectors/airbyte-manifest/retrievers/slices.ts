import type { ReadRequest, StreamState } from '../../contract/connector.ts';
import { ConfigurationError } from '../../contract/errors.ts';
import { type OpenSlice, slicesAhead } from '../../kits/rest/prefetch-pages.ts';
import { NO_PROGRESS, type ReadProgress } from '../../kits/rest/progress.ts';
import type { ApiRecord } from '../../kits/rest/records.ts';
import type { IncrementalSync } from '../components/cursor-components.ts';
import type { AnyStream, DeclarativeStream, ParentStreamConfig, Retriever } from '../components/stream-components.ts';
import { CountCursor } from '../incremental/count-cursor.ts';
import { DatetimeCursor, normalOf, usesInterval } from '../incremental/datetime-cursor.ts';
import { delegatedStream, isIncremental } from '../incremental/state-delegation.ts';
import type { StreamCursor } from '../incremental/stream-cursor.ts';
import { ReadingState } from '../incremental/state.ts';
import {
  type CustomSlice,
  type ParentReader,
  type Partition,
  partitionKey,
  partitionsOf,
} from '../partitions/partition-routers.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { type Page, pagesOf, type StreamSlice } from './pages.ts';

export interface Reading {
  runtime: Runtime;
  stream: DeclarativeStream;
  cursor: StreamCursor | null;
  state: ReadingState;
  window: ReadRequest['window'];
}

/** @param state null: from the start */
export function readingOf(
  runtime: Runtime,
  whole: AnyStream,
  state: StreamState | null,
  window: ReadRequest['window'] = null,
): Reading {
  const { stream, state: from, note } = delegatedStream(runtime, whole, state);
  const { incremental_sync: definition, retriever } = stream;
  const cursor = definition ? cursorOf(runtime, definition) : null;
  const partitioned = (retriever.partition_router ?? []).length > 0;
  const shared = definition?.type === 'DatetimeBasedCursor' && definition.global_substream_cursor === true;
  const normalText = (text: string) => (cursor ? cursor.normalOf(text) : normalOf(text));
  const options = { partitioned, shared, startedAt: runtime.ctx.now(), note, normalOf: normalText };
  return { runtime, stream, cursor, state: new ReadingState(from, options), window };
}

function cursorOf({ templates, scope, ctx }: Runtime, definition: IncrementalSync): StreamCursor {
  return definition.type === 'IncrementingCountCursor'
    ? new CountCursor(definition, templates, scope)
    : new DatetimeCursor(definition, templates, scope, ctx.now);
}

/** All records of a retriever that belongs to no stream, such as that of a schema loader. */
export function readingBy(runtime: Runtime, name: string, retriever: Retriever): Reading {
  return readingOf(
    runtime,
    { type: 'DeclarativeStream', name, retriever, schema_loader: [], transformations: [] },
    null,
  );
}

/** The slices of a read, in order. The pages of the next ones are fetched ahead. */
export function slicesOf(reading: Reading): AsyncGenerator<OpenSlice<StreamSlice, Page>> {
  const { runtime, stream, cursor } = reading;
  const open = (slice: StreamSlice) => pagesOf(runtime, stream, slice, cursor);
  // Each slice that a retriever in Python reads has a process.
  const concurrency = stream.retriever.python ? 1 : runtime.concurrency;
  return slicesAhead({ slices: plannedSlices(reading), open, concurrency });
}

/** All pages of a read, in order. */
export async function* allPages(reading: Reading): AsyncGenerator<Page> {
  for await (const { items } of slicesOf(reading)) yield* items;
}

async function* plannedSlices(reading: Reading): AsyncGenerator<StreamSlice> {
  const { runtime, stream, cursor, state, window } = reading;
  const sliced = usesInterval(stream);
  const planned = new Set<string>();
  for await (const partition of partitionsOf(runtime, stream, parentsOf(reading))) {
    const key = partitionKey(partition);
    if (!cursor) {
      yield { key, partition, interval: null, floor: null, reached: null };
      continue;
    }
    // As with Airbyte: parents that overlap, such as those of two intervals, name a partition twice.
    if (planned.has(key)) continue;
    planned.add(key);
    const progress = state.of(key);
    const { floor, intervals } = cursor.range(progress, window, sliced);
    for (const interval of intervals) yield { key, partition, interval, floor, reached: progress.cursor };
  }
}

const MAX_PARENT_RECORDS = 200_000;

function parentsOf(child: Reading): ParentReader {
  const { runtime } = child;
  const known = new Map<string, () => AsyncGenerator<Page>>();
  const recordsOf = async (name: string, pages: AsyncGenerator<Page>) => {
    const records: ApiRecord[] = [];
    for await (const page of pages) {
      records.push(...page.records);
      if (records.length > MAX_PARENT_RECORDS) throw tooManyRecords(name);
    }
    return records;
  };
  return {
    records: (config) => readParents(child, config),
    async slices(stream) {
      const reading = readingOf(runtime, stream, null);
      const found: CustomSlice[] = [];
      for await (const slice of plannedSlices(reading)) {
        const cursor_slice = slice.interval && reading.cursor ? reading.cursor.interval(slice.interval) : {};
        const key = `${stream.name} ${slice.key} ${slice.interval?.start ?? ''}`;
        known.set(key, () => pagesOf(runtime, reading.stream, slice, reading.cursor));
        found.push({ key, partition: slice.partition.values, cursor_slice });
      }
      return found;
    },
    async inSlice(stream, key) {
      const { name } = stream;
      if (key === null) return await recordsOf(name, allPages(readingOf(runtime, stream, null)));
      const pages = known.get(key);
      return pages ? await recordsOf(name, pages()) : [];
    },
  };
}

const tooManyRecords = (name: string) =>
  new ConfigurationError(
    'too_many_parents',
    `components.py reads more than ${MAX_PARENT_RECORDS.toLocaleString('en')} records of the parent stream "${name}" at once`,
  );

/** All records of a parent. With an incremental dependency, those that have changed since this stream was read. */
async function* readParents(
  child: Reading,
  config: ParentStreamConfig,
): AsyncGenerator<{ record: ApiRecord; partition: Partition }> {
  const { stream, incremental_dependency } = config;
  const follows = incremental_dependency === true && isIncremental(stream);
  const known = follows && child.window === null ? (child.state.parents[stream.name] ?? null) : null;
  const reading = readingOf(child.runtime, stream, known);
  const { cursor } = reading;
  for await (const { slice, items } of slicesOf(reading)) {
    let highest = reading.state.of(slice.key).cursor;
    for await (const page of items) {
      for (const record of page.records) {
        const normal = cursor?.normal(record[cursor.field]) ?? null;
        if (normal !== null && (highest === null || normal > highest)) highest = normal;
        if (normal === null || !cursor || slice.floor === null || normal >= cursor.textOf(slice.floor))
          yield { record, partition: slice.partition };
      }
    }
    reading.state.note(slice.key, progressAfter(reading, slice, { cursor: highest, boundary: [] }));
  }
  if (!follows) return;
  reading.state.finish();
  const state = reading.state.state(true, (normal) => normal);
  if (state) child.state.parents[stream.name] = state;
}

/** The progress of a slice's partition once the slice has been read. */
export function progressAfter(
  { cursor, runtime }: Reading,
  { interval }: StreamSlice,
  seen: Pick<ReadProgress, 'cursor' | 'boundary'> & { boundary_exceeded?: boolean },
): ReadProgress {
  // What an interval in the future has now says nothing about what it will have.
  const now = runtime.ctx.now().getTime() * 1000;
  const next = interval?.next ?? null;
  const read_until = next !== null && cursor ? cursor.textOf(Math.min(next, now)) : null;
  return { ...NO_PROGRESS, ...seen, read_until, complete: interval?.is_last ?? true };
}
