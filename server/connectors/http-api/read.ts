import { type CursorTracker, trackCursor, trackHighest } from '../cells/cursor.ts';
import type { Batch, Cell, ReadRequest, StreamState } from '../contract/connector.ts';
import { ConfigurationError, DataError } from '../contract/errors.ts';
import { type Api, type Context, openApi, streamOf } from './api.ts';
import { inBatches } from '../kits/rest/batches.ts';
import type { Incremental, StreamDefinition } from './definition.ts';
import { type Page, readPages } from './pages.ts';
import { type ColumnSource, type RowReader, rowReader, warnOfUnknown } from '../kits/rest/rows.ts';
import { type CursorScale, cursorScale, type ReadState, type Slice, slicesOf } from './datetime-cursor.ts';
import { renderText } from './template.ts';

/** Reads a stream: slice by slice, page by page. Incremental reads give a state where everything before it is through. */
export async function* readStream(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  // Its own end, so that a reader who leaves early also ends the page that is on its way.
  const abort = new AbortController();
  const stop = () => abort.abort(ctx.signal.reason);
  ctx.signal.throwIfAborted();
  ctx.signal.addEventListener('abort', stop, { once: true });
  try {
    const api = openApi({ ...ctx, signal: abort.signal }, { hurry: false });
    const stream = streamOf(api, request.stream.name);
    const reader = rowReader(columnSource(stream), request);
    if (stream.incremental) yield* readSlices({ api, stream, incremental: stream.incremental, reader, request });
    else
      yield* inBatches(readPages(api, stream, { start: null, end: null, is_last: true }), (page) => reader.rows(page));
    warnOfUnknown(ctx, request.stream.name, reader.unknown);
  } finally {
    ctx.signal.removeEventListener('abort', stop);
    abort.abort();
  }
}

interface Reading {
  api: Api;
  stream: StreamDefinition;
  incremental: Incremental;
  reader: RowReader;
  request: ReadRequest;
}

async function* readSlices(reading: Reading): AsyncGenerator<Batch> {
  const { api, stream, incremental, reader, request } = reading;
  const { cursor_field, order } = incremental;
  const field = request.stream.fields.find(({ path }) => path[0] === cursor_field);
  const scale = cursorScale(incremental, field?.type ?? 'string');
  const goesOn = request.sync_mode === 'incremental';
  const state = goesOn ? earlierState(request.state, scale) : null;
  const first = incremental.start === undefined ? null : renderText(incremental.start, api.scope);
  const width = request.columns.length;
  const track = order === 'ascending' ? trackCursor : trackHighest;
  const tracker = track({ cursorIndex: width, keyIndexes: [], state, compare: scale.compare });
  let progress: ReadState = state ?? { cursor: null, boundary: [], read_until: null, complete: false };
  const shown = (): StreamState => ({
    ...progress,
    cursor: progress.cursor === null ? null : scale.shown(progress.cursor),
  });
  for (const slice of slicesOf({ incremental, scale, first, state, window: request.window, now: api.ctx.now() })) {
    const toRows = slicedRows({ reader, scale, slice, cursor_field, order, width });
    for await (const batch of inBatches(readPages(api, stream, slice), toRows)) {
      const tracked = goesOn ? tracker.next(batch.rows) : { rows: batch.rows, state: null };
      const ascending = goesOn && order === 'ascending';
      if (ascending && tracked.state) progress = { ...progress, ...tracked.state, complete: false };
      const rows = cut(tracked.rows, width);
      if (rows.length > 0) yield { rows, bytes: batch.bytes, ...(ascending && { state: shown() }) };
    }
    if (!goesOn) continue;
    progress = afterSlice({ progress, tracker, slice });
    yield { rows: [], bytes: 0, state: shown() };
  }
}

/** Of the last slice more may come: it is read again, and what is known of it left out. */
function afterSlice(input: { progress: ReadState; tracker: CursorTracker; slice: Slice }): ReadState {
  const { progress, tracker, slice } = input;
  const { state } = tracker.next([]);
  return {
    cursor: state?.cursor ?? progress.cursor,
    boundary: state?.boundary ?? progress.boundary,
    read_until: (slice.is_last ? slice.start : slice.end) ?? progress.read_until,
    complete: slice.is_last,
  };
}

/** What the definition says of a stream's columns. */
const columnSource = ({ name, schema }: StreamDefinition): ColumnSource => ({
  name,
  remedy: "Declare another type in the definition's schema",
  format: (column) => schema?.properties[column]?.format ?? null,
  isDeclared: (column) => schema?.properties[column] !== undefined,
});

function earlierState(state: StreamState | null, scale: CursorScale): ReadState | null {
  if (!state) return null;
  const normal = (text: unknown) => (typeof text === 'string' ? scale.normal(text) : null);
  const cursor = normal(state.cursor);
  if (cursor === null && state.cursor !== null) {
    throw new ConfigurationError('invalid_cursor', `"${state.cursor}" is no value of the cursor`);
  }
  const boundary = Array.isArray(state.boundary) ? state.boundary.filter((one) => typeof one === 'string') : [];
  return { cursor, boundary, read_until: normal(state.read_until), complete: state.complete === true };
}

interface Slicing {
  reader: RowReader;
  scale: CursorScale;
  slice: Slice;
  cursor_field: string;
  order: Incremental['order'];
  width: number;
}

/**
 * The rows of a page that are within the slice, their cursor's normal form behind them: services differ in whether
 * limits belong to what they limit, and some do not heed them at all.
 */
function slicedRows({ reader, scale, slice, cursor_field, order, width }: Slicing): (page: Page) => Cell[][] {
  let latest: string | null = null;
  return (page) => {
    const rows = reader.rows(page);
    for (const [at, row] of rows.entries()) {
      const cell = reader.cell(page.records[at] ?? {}, cursor_field);
      const normal = cell === null ? null : scale.normal(cell);
      if (normal === null && cell !== null) {
        throw new DataError(
          'invalid_cursor',
          `The ${cursor_field} of a record, "${cell.slice(0, 100)}", has no place in the order of cursors`,
        );
      }
      if (order === 'ascending' && normal !== null && latest !== null && scale.compare(normal, latest) < 0) {
        throw new ConfigurationError(
          'not_ascending',
          `The definition says that ${cursor_field} ascends, but it does not`,
        );
      }
      latest = normal ?? latest;
      row.push(normal);
    }
    return rows.filter((row) => isWithin(row[width] ?? null, slice, scale));
  };
}

const isWithin = (normal: string | null, { start, end }: Slice, { compare }: CursorScale) =>
  normal === null || ((start === null || compare(normal, start) >= 0) && (end === null || compare(normal, end) < 0));

function cut(rows: Cell[][], width: number): Cell[][] {
  for (const row of rows) row.length = width;
  return rows;
}
