import type { StreamRow } from '../../../db/schema/index.ts';
import type { DestinationSyncMode, StreamSchema, SyncMode } from '../../connectors/contract/connector.ts';
import { cursorPath, fieldName, keyPaths } from '../transfer-plan.ts';

export interface PlanNotice {
  code: string;
  message: string;
  stream_name: string | null;
}

/** How a custom run treats one stream. */
export interface StreamPlan {
  stream: StreamRow;
  supports_date_window: boolean;
  /** Why it cannot be limited to days. */
  reason: string | null;
  sync_mode: SyncMode;
  destination_sync_mode: DestinationSyncMode;
  warnings: PlanNotice[];
}

export interface StreamPlanInput {
  stream: StreamRow;
  /** What the source's catalog says of it; null when it is gone from there. */
  schema: StreamSchema | null;
  /** What the destination can do. */
  supported: readonly DestinationSyncMode[];
  /** The destination can tell the stream's rows of a window, and replaces them. */
  replaceable: boolean;
  windowed: boolean;
  mode: 'backfill' | 'incremental' | 'full_refresh';
  clear_destination: boolean;
}

/** Types of a cursor that a window of days can be laid over. */
export const DATED: readonly string[] = ['date', 'timestamp', 'timestamp_tz'];

/** Decides how a stream is read and written by a custom run. Pure. */
export function planStream(input: StreamPlanInput): StreamPlan {
  const reason = whyNoWindow(input);
  const { destination_sync_mode, warnings } = writing(input);
  return {
    stream: input.stream,
    supports_date_window: reason === null,
    reason,
    sync_mode: input.mode === 'full_refresh' ? 'full_refresh' : input.stream.sync_mode,
    destination_sync_mode,
    warnings: input.windowed && reason !== null ? [skipped(input.stream, reason)] : warnings,
  };
}

function whyNoWindow({ stream, schema }: StreamPlanInput): string | null {
  if (!schema) return 'The source has this stream no longer';
  if (!schema.supports_date_window) return 'The source cannot limit this stream to days';
  const path = cursorPath(schema, stream);
  if (!path) return 'The stream has no cursor field';
  const type = schema.fields.find((field) => fieldName(field.path) === fieldName(path))?.type;
  return type && DATED.includes(type) ? null : `The cursor ${fieldName(path)} is no date or timestamp`;
}

/** The type that decides how a window is written: for a date, days; else instants. */
export function hasDateCursor(schema: StreamSchema, stream: StreamRow): boolean {
  const path = cursorPath(schema, stream);
  return path !== null && schema.fields.find((field) => fieldName(field.path) === fieldName(path))?.type === 'date';
}

/** What was loaded before may come again: it must not be there twice, and what is outside the window must stay. */
function writing(input: StreamPlanInput): Pick<StreamPlan, 'destination_sync_mode' | 'warnings'> {
  const { stream, schema, supported, windowed, clear_destination } = input;
  const own = stream.destination_sync_mode;
  if (clear_destination) return { destination_sync_mode: 'overwrite', warnings: [] };
  if (own !== 'append' && !(own === 'overwrite' && windowed)) return { destination_sync_mode: own, warnings: [] };
  // Not so for append: a merge leaves a unique key behind, at which later appends of changed rows would fail.
  const keyed = schema !== null && keyPaths(schema, stream).length > 0;
  if (own === 'overwrite' && keyed && supported.includes('append_dedup')) {
    return { destination_sync_mode: 'append_dedup', warnings: [] };
  }
  // From the live cursor on only a part of the window is read.
  const replaced = windowed && input.replaceable && input.mode !== 'incremental';
  return { destination_sync_mode: 'append', warnings: [replaced ? replaces(stream) : duplicates(stream)] };
}

const notice = (code: string, stream: StreamRow, message: string): PlanNotice => ({
  code,
  message,
  stream_name: stream.name,
});

const skipped = (stream: StreamRow, reason: string) =>
  notice('window_unsupported', stream, `${stream.name} is left out: ${reason}`);

const replaces = (stream: StreamRow) =>
  notice(
    'replaces_window',
    stream,
    `${stream.name}: the rows of the window that the destination has are replaced by those that the source has now`,
  );

const duplicates = (stream: StreamRow) =>
  notice(
    'may_duplicate_rows',
    stream,
    `${stream.name} is appended to: rows that are there already are loaded once more`,
  );
