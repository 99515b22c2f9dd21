import type { ReadRequest, StreamState } from '../../contract/connector.ts';
import { ahead } from '../../kits/rest/prefetch-pages.ts';
import type { AnyStream, DeclarativeStream, ParentStreamConfig, Retriever } from '../components/stream-components.ts';
import { chosenStream, isIncremental } from '../delegation.ts';
import { type Page, type Part, pagesOf } from '../pagination/pages.ts';
import { type Partition, partitionKey, partitionsOf } from './partitions.ts';
import type { ManifestRecord } from '../extractors/records.ts';
import type { Runtime } from '../runtime.ts';
import { Cursor, isSliced } from '../incremental/datetime-cursor.ts';
import { ReadingState } from '../incremental/state.ts';

export interface Reading {
  runtime: Runtime;
  stream: DeclarativeStream;
  cursor: Cursor | null;
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
  const { stream, state: from, note } = chosenStream(runtime, whole, state);
  const { incremental_sync: definition, retriever } = stream;
  const cursor = definition ? new Cursor(definition, runtime.templates, runtime.scope, runtime.ctx.now) : null;
  const partitioned = (retriever.partition_router ?? []).length > 0;
  const options = { partitioned, shared: definition?.global_substream_cursor === true, begun: runtime.ctx.now(), note };
  return { runtime, stream, cursor, state: new ReadingState(from, options), window };
}

/** A retriever that serves no stream of its own, with all that it gives. */
export function readingBy(runtime: Runtime, name: string, retriever: Retriever): Reading {
  return readingOf(
    runtime,
    { type: 'DeclarativeStream', name, retriever, schema_loader: [], transformations: [] },
    null,
  );
}

/** The parts of a read, in order, the pages of the next ones already on their way. */
export function partsOf(reading: Reading): AsyncGenerator<{ of: Part; items: AsyncGenerator<Page> }> {
  const { runtime, stream, cursor } = reading;
  const open = (part: Part) => pagesOf(runtime, stream, part, cursor);
  return ahead({ parts: plannedParts(reading), open, concurrency: runtime.concurrency });
}

async function* plannedParts(reading: Reading): AsyncGenerator<Part> {
  const { runtime, stream, cursor, state, window } = reading;
  const sliced = isSliced(stream);
  for await (const partition of partitionsOf(runtime, stream, (config) => readParents(reading, config))) {
    const key = partitionKey(partition);
    if (!cursor) {
      yield { key, partition, interval: null, from: null };
      continue;
    }
    const { from, intervals } = cursor.span(state.of(key), window, sliced);
    for (const interval of intervals) yield { key, partition, interval, from };
  }
}

/** All records of a parent; with an incremental dependency those that changed since this stream was read. */
async function* readParents(
  child: Reading,
  config: ParentStreamConfig,
): AsyncGenerator<{ record: ManifestRecord; partition: Partition }> {
  const { stream, incremental_dependency } = config;
  const follows = incremental_dependency === true && isIncremental(stream);
  const known = follows && child.window === null ? (child.state.parents[stream.name] ?? null) : null;
  const reading = readingOf(child.runtime, stream, known);
  for await (const { of: part, items } of partsOf(reading)) {
    let highest = reading.state.of(part.key).cursor;
    for await (const page of items) {
      for (const record of page.records) {
        const normal = reading.cursor?.normal(record[reading.cursor.field]) ?? null;
        if (normal !== null && (highest === null || normal > highest)) highest = normal;
        if (normal === null || part.from === null || normal >= reading.cursor!.textOf(part.from))
          yield { record, partition: part.partition };
      }
    }
    reading.state.note(part.key, progressAfter(reading, part, { cursor: highest, boundary: [] }));
  }
  if (!follows) return;
  reading.state.finish();
  const state = reading.state.state(true, (normal) => normal);
  if (state) child.state.parents[stream.name] = state;
}

/** How far a part got the partition that it is of. */
export function progressAfter(
  { cursor }: Reading,
  { interval }: Part,
  seen: { cursor: string | null; boundary: string[] },
) {
  const read_until = interval && cursor ? cursor.textOf(interval.next) : null;
  return { ...seen, read_until, complete: interval?.is_last ?? true };
}
