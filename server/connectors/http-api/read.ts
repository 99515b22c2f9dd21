import { boundaryWarning, type CursorTracker, trackCursor, trackHighest } from '../cells/cursor.ts';
import type { Batch, Cell, ReadRequest, StreamState } from '../contract/connector.ts';
import { ConfigurationError, DataError } from '../contract/errors.ts';
import { inBatches } from '../kits/rest/batches.ts';
import { NO_PROGRESS, type ReadProgress, progressOf } from '../kits/rest/progress.ts';
import { readWithRequests } from '../kits/rest/read-scope.ts';
import type { ApiRecord, RecordPage } from '../kits/rest/records.ts';
import {
  type ColumnSource,
  recordOf,
  type RowReader,
  rowReader,
  rowsInRange,
  warnOfUnknown,
  withoutCursor,
} from '../kits/rest/rows.ts';
import { type Api, type Context, openApi, streamOf } from './api.ts';
import { type CursorScale, cursorScale, type Slice, slicesOf } from './datetime-cursor.ts';
import type { Incremental, StreamDefinition } from './definition.ts';
import { readPages } from './pages.ts';
import { renderText } from '../kits/rest/template.ts';

/** Reads a stream slice by slice, page by page. A state follows wherever everything before it has been read. */
export const readStream = (given: Context, request: ReadRequest): AsyncGenerator<Batch> =>
  readWithRequests(given, async function* (ctx) {
    const api = openApi(ctx, { interactive: false });
    const stream = streamOf(api, request.stream.name);
    const reader = rowReader(columnSource(stream), request);
    if (stream.incremental) yield* readSlices({ api, stream, incremental: stream.incremental, reader, request });
    else
      yield* inBatches(readPages(api, stream, { start: null, end: null, is_last: true }), (page) => reader.rows(page));
    api.guards.finish(ctx);
    warnOfUnknown(ctx, request.stream.name, reader.unknown);
  });

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
  const resumes = request.sync_mode === 'incremental';
  const state = resumes ? earlierProgress(request.state, scale) : null;
  const first = incremental.start === undefined ? null : renderText(incremental.start, api.scope);
  const width = request.columns.length;
  const track = order === 'ascending' ? trackCursor : trackHighest;
  const tracker = track({ cursorIndex: width, keyIndexes: [], state, compare: scale.compare, recordOf });
  let progress = state ?? NO_PROGRESS;
  const shown = (): StreamState => ({
    ...progress,
    cursor: progress.cursor === null ? null : scale.shown(progress.cursor),
  });
  for (const slice of slicesOf({ incremental, scale, first, state, window: request.window, now: api.ctx.now() })) {
    const toRows = slicedRows({ reader, scale, slice, cursor_field, order });
    for await (const batch of inBatches(readPages(api, stream, slice), toRows)) {
      const tracked = resumes ? tracker.next(batch.rows) : { rows: batch.rows, state: null };
      const ascending = resumes && order === 'ascending';
      if (ascending && tracked.state) progress = { ...progress, ...tracked.state, complete: false };
      const rows = withoutCursor(tracked.rows, width);
      if (rows.length > 0) yield { rows, bytes: batch.bytes, ...(ascending && { state: shown() }) };
    }
    if (!resumes) continue;
    progress = afterSlice({ progress, tracker, slice });
    if (api.guards.areBlind) continue;
    yield { rows: [], bytes: 0, state: shown() };
  }
  if (progress.boundary_exceeded) api.ctx.warn(...boundaryWarning(stream.name));
}

/** The last slice may still get records: the next run reads it again and leaves out the rows that it knows. */
function afterSlice(input: { progress: ReadProgress; tracker: CursorTracker; slice: Slice }): ReadProgress {
  const { progress, tracker, slice } = input;
  const { state } = tracker.next([]);
  return {
    ...(state?.boundary_exceeded && { boundary_exceeded: true }),
    cursor: state?.cursor ?? progress.cursor,
    boundary: state?.boundary ?? progress.boundary,
    read_until: (slice.is_last ? slice.start : slice.end) ?? progress.read_until,
    complete: slice.is_last,
  };
}

const columnSource = ({ name, schema }: StreamDefinition): ColumnSource => ({
  name,
  remedy: "Declare another type in the definition's schema.",
  format: (column) => schema?.properties[column]?.format ?? null,
  isDeclared: (column) => schema?.properties[column] !== undefined,
});

function earlierProgress(state: StreamState | null, scale: CursorScale): ReadProgress | null {
  if (!state) return null;
  const progress = progressOf(state, (text) => scale.normal(text));
  if (progress.cursor === null && state.cursor !== null) {
    throw new ConfigurationError(
      'invalid_cursor',
      `"${state.cursor}" is not a value of the cursor. Set another cursor, or reset it.`,
    );
  }
  return progress;
}

interface Slicing {
  reader: RowReader;
  scale: CursorScale;
  slice: Slice;
  cursor_field: string;
  order: Incremental['order'];
}

/** The rows of a page within the slice, each with the sortable form of its cursor as the last cell. */
function slicedRows({ reader, scale, slice, cursor_field, order }: Slicing): (page: RecordPage) => Cell[][] {
  let latest: string | null = null;
  return (page) => {
    const cursorOf = (record: ApiRecord) => {
      const cell = reader.cell(record, cursor_field);
      const normal = cell === null ? null : scale.normal(cell);
      if (normal === null && cell !== null) {
        const shown = cell.slice(0, 100);
        throw new DataError('invalid_cursor', `The ${cursor_field} of a record is not a valid cursor: "${shown}"`);
      }
      if (order === 'ascending' && normal !== null && latest !== null && scale.compare(normal, latest) < 0) {
        throw new ConfigurationError(
          'not_ascending',
          `Records are not in ascending order of ${cursor_field}. Remove "order: ascending" from the definition.`,
        );
      }
      latest = normal ?? latest;
      return normal;
    };
    return rowsInRange(reader.rows(page), page, { ...slice, cursorOf, compare: scale.compare });
  };
}
