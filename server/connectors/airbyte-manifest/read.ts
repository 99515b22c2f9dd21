import { type CursorTracker, trackHighest } from '../cells/cursor.ts';
import type { Batch, Cell, ReadRequest } from '../contract/connector.ts';
import { DataError } from '../contract/errors.ts';
import { inBatches } from '../kits/rest/batches.ts';
import type { OpenSlice } from '../kits/rest/prefetch-pages.ts';
import { readWithRequests } from '../kits/rest/read-scope.ts';
import {
  type ColumnSource,
  compareText,
  type RowReader,
  rowReader,
  rowsInRange,
  warnOfUnknown,
  withoutCursor,
} from '../kits/rest/rows.ts';
import type { DeclarativeStream } from './components/stream-components.ts';
import { isIncremental } from './incremental/state-delegation.ts';
import { declaredColumns } from './schema/describe-stream.ts';
import type { Page, StreamSlice } from './retrievers/pages.ts';
import { progressAfter, type Reading, readingOf, slicesOf } from './retrievers/slices.ts';
import { type Context, openManifest } from './runtime/runtime.ts';
import { streamOf } from './resolvers/streams.ts';

/** A state follows each of the first slices, then one a second: it holds all partitions and may be large. */
const EARLY_STATES = 100;
const STATE_INTERVAL_MS = 1000;

/** Reads a stream: partition by partition, interval by interval, page by page. */
export const readStream = (given: Context, request: ReadRequest): AsyncGenerator<Batch> =>
  readWithRequests(given, async function* (ctx) {
    const runtime = openManifest(ctx, { interactive: false });
    const stream = await streamOf(runtime, request.stream.name);
    const resumes = request.sync_mode === 'incremental' && isIncremental(stream);
    const reading = readingOf(runtime, stream, resumes ? request.state : null, request.window);
    const misfits = new Map<string, number>();
    const columns = columnSource(ctx, { stream: reading.stream, request }, misfits);
    const reader = rowReader(columns, request);
    yield* new StreamRead(reading, { reader, request, resumes }).batches();
    warnOfUnknown(ctx, stream.name, reader.unknown);
    for (const [field, count] of misfits)
      ctx.warn(
        'value_does_not_fit',
        `${stream.name}: ${count} values of "${field}" do not fit the type of the column and became NULL`,
      );
  });

function columnSource(
  ctx: Context,
  { stream, request }: { stream: DeclarativeStream; request: ReadRequest },
  misfits: Map<string, number>,
): ColumnSource {
  const declared = declaredColumns(
    stream,
    request.stream.fields.map(({ path }) => path[0] ?? ''),
  );
  return {
    name: stream.name,
    remedy: 'Change the type of the field in the schema of the manifest, or set unfitting_values to null.',
    format: () => null,
    isDeclared: (column) => declared.has(column),
    ...(ctx.config.unfitting_values === 'null' && {
      misfit: (column: string) => void misfits.set(column, (misfits.get(column) ?? 0) + 1),
    }),
  };
}

interface Options {
  reader: RowReader;
  request: ReadRequest;
  resumes: boolean;
}

class StreamRead {
  readonly #width: number;
  #tracked: { key: string; tracker: CursorTracker } | null = null;
  #over = false;
  #states = 0;
  #stated = performance.now();

  constructor(
    private readonly reading: Reading,
    private readonly options: Options,
  ) {
    this.#width = options.request.columns.length;
  }

  async *batches(): AsyncGenerator<Batch> {
    const slices = slicesOf(this.reading);
    const { resumes } = this.options;
    try {
      do {
        yield* inBatches(this.#pagesUntilState(slices), (page) => this.#rows(page));
        if (this.#over) this.reading.state.finish();
        const state = resumes ? this.reading.state.state(this.#over, (normal) => this.#shown(normal)) : null;
        if (state) yield { rows: [], bytes: 0, state };
      } while (!this.#over);
    } finally {
      await slices.return(undefined);
    }
  }

  async *#pagesUntilState(slices: AsyncGenerator<OpenSlice<StreamSlice, Page>>): AsyncGenerator<Page> {
    for (;;) {
      const next = await slices.next();
      if (next.done) {
        this.#over = true;
        return;
      }
      const { slice, items } = next.value;
      yield* items;
      if (!this.options.resumes) continue;
      const state = this.#tracker(slice).next([]).state;
      const seen = { cursor: state?.cursor ?? null, boundary: state?.boundary ?? [] };
      this.reading.state.note(slice.key, progressAfter(this.reading, slice, seen));
      this.#states += 1;
      if (this.#states > EARLY_STATES && performance.now() - this.#stated < STATE_INTERVAL_MS) continue;
      this.#stated = performance.now();
      return;
    }
  }

  #tracker({ key }: StreamSlice): CursorTracker {
    if (this.#tracked?.key !== key) {
      const { cursor, boundary } = this.reading.state.of(key);
      const options = { cursorIndex: this.#width, state: { cursor, boundary }, compare: compareText };
      this.#tracked = { key, tracker: trackHighest(options) };
    }
    return this.#tracked.tracker;
  }

  /** The rows of a page that belong to this read, without those that an earlier read had. */
  #rows(page: Page): Cell[][] {
    const { cursor, window } = this.reading;
    const rows = this.options.reader.rows(page);
    if (!cursor) return rows;
    const start = page.slice.from === null ? null : cursor.textOf(page.slice.from);
    const end = window?.end ? cursor.limit(window.end) : null;
    const range = { start, end, compare: compareText };
    const inRange = rowsInRange(rows, (at) => this.#normal(page.records[at] ?? {}), range);
    const fresh = this.options.resumes ? this.#tracker(page.slice).next(inRange).rows : inRange;
    return withoutCursor(fresh, this.#width);
  }

  #normal(record: Record<string, unknown>): string | null {
    const { cursor, stream } = this.reading;
    if (!cursor) return null;
    const normal = cursor.normal(record[cursor.field]);
    if (normal !== undefined) return normal;
    const shown = String(record[cursor.field]).slice(0, 100);
    throw new DataError('invalid_cursor', `${stream.name}: the ${cursor.field} of a record is not a time: "${shown}"`);
  }

  /** The cursor as users see it: a date for a column of dates. */
  #shown(normal: string): string {
    const { cursor_field, stream } = this.options.request;
    const name = cursor_field?.[0] ?? this.reading.cursor?.field;
    const field = stream.fields.find(({ path }) => path[0] === name);
    return field?.type === 'date' ? normal.slice(0, 10) : normal;
  }
}
