import { boundaryWarning, type CursorTracker, trackHighest } from '../cells/cursor.ts';
import type { Batch, Cell, ReadRequest } from '../contract/connector.ts';
import { inBatches } from '../kits/rest/batches.ts';
import type { OpenSlice } from '../kits/rest/prefetch-pages.ts';
import { readWithRequests } from '../kits/rest/read-scope.ts';
import type { ApiRecord } from '../kits/rest/records.ts';
import {
  type ColumnSource,
  compareText,
  recordOf,
  type RowReader,
  rowReader,
  rowsInRange,
  warnOfUnknown,
  withoutCursor,
} from '../kits/rest/rows.ts';
import type { DeclarativeStream } from './components/stream-components.ts';
import { pyText } from './interpolation/python-literal.ts';
import { isIncremental } from './incremental/state-delegation.ts';
import { declaredColumns, jsonSchemaOf } from './schema/describe-stream.ts';
import type { Page, StreamSlice } from './retrievers/pages.ts';
import { progressAfter, type Reading, readingOf, slicesOf } from './retrievers/slices.ts';
import { openManifest, type Runtime } from './runtime/runtime.ts';
import { streamOf } from './resolvers/streams.ts';
import type { Context } from './runtime/settings.ts';

/** A state follows each of the first slices, then one a second: it holds all partitions and may be large. */
const EARLY_STATES = 100;
const STATE_INTERVAL_MS = 1000;

/** Reads a stream: partition by partition, interval by interval, page by page. */
export const readStream = (given: Context, request: ReadRequest): AsyncGenerator<Batch> =>
  readWithRequests(given, async function* (ctx) {
    const runtime = openManifest(ctx, { interactive: false, schemaOf: jsonSchemaOf });
    const stream = await streamOf(runtime, request.stream.name);
    const resumes = request.sync_mode === 'incremental' && isIncremental(stream);
    const reading = readingOf(runtime, stream, resumes ? request.state : null, request.window);
    runtime.selected.set(stream.name, neededFields(request, reading));
    const columns = columnSource(runtime, { stream: reading.stream, request });
    const reader = rowReader(columns, request);
    if (reading.stream.file_uploader) {
      const message = `${stream.name}: the files that its records name are not downloaded`;
      runtime.notices.note(`${stream.name} files`, { code: 'files_not_loaded', message: () => message });
    }
    yield* new StreamRead(reading, { reader, request, resumes }).batches();
    runtime.notices.report(ctx);
    warnOfUnknown(ctx, stream.name, reader.unknown);
  });

function columnSource(
  { ctx, notices }: Runtime,
  { stream, request }: { stream: DeclarativeStream; request: ReadRequest },
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
    cut: (column) =>
      notices.note(`cut ${column}`, {
        code: 'digits_cut_off',
        message: (count) =>
          `${stream.name}: ${count} values of "${column}" have more than six digits of a second. The rest is cut off`,
      }),
    ...(ctx.config.unfitting_values === 'null' && {
      misfit: (column: string) =>
        notices.note(`misfit ${column}`, {
          code: 'value_does_not_fit',
          message: (count) =>
            `${stream.name}: ${count} values of "${column}" do not fit the type of the column and became NULL`,
        }),
    }),
  };
}

/** The cursor and the key are needed even when no column has them. */
function neededFields({ columns, stream }: ReadRequest, { cursor }: Reading): ReadonlySet<string> {
  const paths = [...columns.map(({ field }) => field.path), ...(stream.source_defined_primary_key ?? [])];
  return new Set([...paths.map(([name = '']) => name), ...(cursor ? [cursor.field] : [])]);
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
        const { guards, ctx } = this.reading.runtime;
        if (this.#over) guards.finish(ctx);
        if (guards.areBlind) continue;
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
      const seen = { ...state, cursor: state?.cursor ?? null, boundary: state?.boundary ?? [] };
      if (state?.boundary_exceeded) this.#warnOfBoundary();
      this.reading.state.note(slice.key, progressAfter(this.reading, slice, seen));
      this.#states += 1;
      if (this.#states > EARLY_STATES && performance.now() - this.#stated < STATE_INTERVAL_MS) continue;
      this.#stated = performance.now();
      return;
    }
  }

  #warnOfBoundary(): void {
    const { runtime, stream } = this.reading;
    const [code, message] = boundaryWarning(stream.name);
    runtime.notices.note(`${stream.name} boundary`, { code, message: () => message });
  }

  #tracker({ key }: StreamSlice): CursorTracker {
    if (this.#tracked?.key !== key) {
      const { cursor, boundary } = this.reading.state.of(key);
      const options = { cursorIndex: this.#width, state: { cursor, boundary }, compare: compareText, recordOf };
      this.#tracked = { key, tracker: trackHighest(options) };
    }
    return this.#tracked.tracker;
  }

  /** The rows of a page that belong to this read, without those that an earlier read had. */
  #rows(page: Page): Cell[][] {
    const { cursor, window } = this.reading;
    const rows = this.options.reader.rows(page);
    if (!cursor) return rows;
    const start = page.slice.floor === null ? null : cursor.textOf(page.slice.floor);
    const end = window?.end ? cursor.limit(window.end) : null;
    const cursorOf = (record: ApiRecord) => this.#normal(record);
    const inRange = rowsInRange(rows, page, { start, end, cursorOf, compare: compareText });
    const fresh = this.options.resumes ? this.#tracker(page.slice).next(inRange).rows : inRange;
    return withoutCursor(fresh, this.#width);
  }

  #normal(record: Record<string, unknown>): string | null {
    const { cursor, stream, runtime } = this.reading;
    if (!cursor) return null;
    const normal = cursor.normal(record[cursor.field]);
    if (normal !== undefined) return normal;
    const shown = pyText(record[cursor.field]).slice(0, 100);
    runtime.notices.note(`${stream.name} cursor`, {
      code: 'invalid_cursor',
      message: (count) =>
        `${stream.name}: the ${cursor.field} of ${count} records is not a ${cursor.isTime ? 'time' : 'count'}, such as "${shown}". They are loaded, but do not move the cursor`,
    });
    return null;
  }

  /** The cursor as users see it: a date for a column of dates. */
  #shown(normal: string): string {
    const { cursor_field, stream } = this.options.request;
    const name = cursor_field?.[0] ?? this.reading.cursor?.field;
    const field = stream.fields.find(({ path }) => path[0] === name);
    const text = this.reading.cursor?.shown(normal) ?? normal;
    return field?.type === 'date' ? text.slice(0, 10) : text;
  }
}
