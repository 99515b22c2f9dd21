import { type CursorTracker, trackHighest } from '../cells/cursor.ts';
import type { Batch, Cell, ReadRequest } from '../contract/connector.ts';
import { DataError } from '../contract/errors.ts';
import { inBatches } from '../kits/rest/batches.ts';
import { type ColumnSource, type RowReader, rowReader, warnOfUnknown } from '../kits/rest/rows.ts';
import type { DeclarativeStream } from './components/stream-components.ts';
import { isIncremental } from './delegation.ts';
import { declaredColumns } from './schema/fields.ts';
import type { Page, Part } from './pagination/pages.ts';
import { partsOf, progressAfter, type Reading, readingOf } from './partitions/slices.ts';
import { type Context, openManifest } from './runtime.ts';
import { streamOf } from './streams.ts';

/** A state after each of the first parts, later one a second: it holds all partitions. */
const EARLY_STATES = 100;
const STATE_MS = 1000;

/** Reads a stream: partition by partition, interval by interval, page by page. */
export async function* readStream(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  // Its own end, so that a reader who leaves early also ends the pages that are on their way.
  const abort = new AbortController();
  const stop = () => abort.abort(ctx.signal.reason);
  ctx.signal.throwIfAborted();
  ctx.signal.addEventListener('abort', stop, { once: true });
  try {
    const runtime = openManifest({ ...ctx, signal: abort.signal }, { hurry: false });
    const stream = await streamOf(runtime, request.stream.name);
    const goesOn = request.sync_mode === 'incremental' && isIncremental(stream);
    const reading = readingOf(runtime, stream, goesOn ? request.state : null, request.window);
    const misfits = new Map<string, number>();
    const columns = columnSource(ctx, { stream: reading.stream, request }, misfits);
    const reader = rowReader(columns, request);
    yield* new StreamRead(reading, { reader, request, goesOn }).batches();
    warnOfUnknown(ctx, stream.name, reader.unknown);
    for (const [field, count] of misfits)
      ctx.warn(
        'value_does_not_fit',
        `${stream.name}: ${count} values of "${field}" are of another type and became NULL`,
      );
  } finally {
    ctx.signal.removeEventListener('abort', stop);
    abort.abort();
  }
}

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
    remedy:
      'The schema of the manifest says otherwise: give the field another type there, or set unfitting_values to null',
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
  goesOn: boolean;
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
    const parts = partsOf(this.reading);
    const { goesOn } = this.options;
    try {
      do {
        yield* inBatches(this.#stretch(parts), (page) => this.#rows(page));
        if (this.#over) this.reading.state.finish();
        const state = goesOn ? this.reading.state.state(this.#over, (normal) => this.#shown(normal)) : null;
        if (state) yield { rows: [], bytes: 0, state };
      } while (!this.#over);
    } finally {
      await parts.return(undefined);
    }
  }

  /** Pages up to where a state is due. */
  async *#stretch(parts: ReturnType<typeof partsOf>): AsyncGenerator<Page> {
    for (;;) {
      const next = await parts.next();
      if (next.done) {
        this.#over = true;
        return;
      }
      const { of: part, items } = next.value;
      yield* items;
      if (!this.options.goesOn) continue;
      const state = this.#tracker(part).next([]).state;
      const seen = { cursor: state?.cursor ?? null, boundary: state?.boundary ?? [] };
      this.reading.state.note(part.key, progressAfter(this.reading, part, seen));
      this.#states += 1;
      if (this.#states > EARLY_STATES && performance.now() - this.#stated < STATE_MS) continue;
      this.#stated = performance.now();
      return;
    }
  }

  #tracker(part: Part): CursorTracker {
    if (this.#tracked?.key !== part.key) {
      const progress = this.reading.state.of(part.key);
      const state = { cursor: progress.cursor, boundary: progress.boundary };
      const compare = (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1);
      this.#tracked = { key: part.key, tracker: trackHighest({ cursorIndex: this.#width, state, compare }) };
    }
    return this.#tracked.tracker;
  }

  /** The rows of a page that belong to the read; those that an earlier one had are left out. */
  #rows(page: Page): Cell[][] {
    const { cursor, window } = this.reading;
    const rows = this.options.reader.rows(page);
    if (!cursor) return rows;
    const from = page.part.from === null ? null : cursor.textOf(page.part.from);
    const end = window?.end ? cursor.limit(window.end) : null;
    for (const [at, row] of rows.entries()) row.push(this.#normal(page.records[at] ?? {}));
    const within = rows.filter((row) => {
      const normal = row[this.#width] ?? null;
      return normal === null || ((from === null || normal >= from) && (end === null || normal < end));
    });
    const fresh = this.options.goesOn ? this.#tracker(page.part).next(within).rows : within;
    for (const row of fresh) row.length = this.#width;
    return fresh;
  }

  #normal(record: Record<string, unknown>): string | null {
    const { cursor, stream } = this.reading;
    const normal = cursor?.normal(record[cursor.field]) ?? null;
    if (
      normal !== null ||
      !cursor ||
      record[cursor.field] === null ||
      record[cursor.field] === undefined ||
      record[cursor.field] === ''
    )
      return normal;
    const shown = String(record[cursor.field]).slice(0, 100);
    throw new DataError('invalid_cursor', `${stream.name}: the ${cursor.field} of a record, "${shown}", is no time`);
  }

  /** As the column shows it: whole days where it has no more. */
  #shown(normal: string): string {
    const { cursor_field, stream } = this.options.request;
    const name = cursor_field?.[0] ?? this.reading.cursor?.field;
    const field = stream.fields.find(({ path }) => path[0] === name);
    return field?.type === 'date' ? normal.slice(0, 10) : normal;
  }
}
