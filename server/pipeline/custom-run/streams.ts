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
  /** Why the stream does not support a date window; null: it does. */
  reason: string | null;
  sync_mode: SyncMode;
  destination_sync_mode: DestinationSyncMode;
  warnings: PlanNotice[];
}

export interface StreamPlanInput {
  stream: StreamRow;
  /** From the catalog of the source; null if the stream was removed there. */
  schema: StreamSchema | null;
  /** The sync modes of the destination. */
  supported: readonly DestinationSyncMode[];
  /** Whether the destination can replace the rows of a window. */
  replaceable: boolean;
  windowed: boolean;
  mode: 'backfill' | 'incremental' | 'full_refresh';
  clear_destination: boolean;
}

/** Cursor types that support a date window. */
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
  if (!schema) return 'The stream no longer exists in the source';
  if (!schema.supports_date_window) return 'The source cannot limit this stream to a date window';
  const path = cursorPath(schema, stream);
  if (!path) return 'The stream has no cursor field';
  const type = schema.fields.find((field) => fieldName(field.path) === fieldName(path))?.type;
  return type && DATED.includes(type) ? null : `The cursor ${fieldName(path)} is not a date or timestamp`;
}

/** Whether the window of a stream is given in days; otherwise it is given in instants. */
export function hasDateCursor(schema: StreamSchema, stream: StreamRow): boolean {
  const path = cursorPath(schema, stream);
  return path !== null && schema.fields.find((field) => fieldName(field.path) === fieldName(path))?.type === 'date';
}

/** Rows may be loaded a second time: they must not be duplicated, and rows outside the window must stay. */
function writing(input: StreamPlanInput): Pick<StreamPlan, 'destination_sync_mode' | 'warnings'> {
  const { stream, schema, supported, windowed, clear_destination } = input;
  const own = stream.destination_sync_mode;
  if (clear_destination) return { destination_sync_mode: 'overwrite', warnings: [] };
  if (own !== 'append' && !(own === 'overwrite' && windowed)) return { destination_sync_mode: own, warnings: [] };
  // Not for append: a merge creates a unique key, and later appends of changed rows would violate it.
  const keyed = schema !== null && keyPaths(schema, stream).length > 0;
  if (own === 'overwrite' && keyed && supported.includes('append_dedup')) {
    return { destination_sync_mode: 'append_dedup', warnings: [] };
  }
  // An incremental run reads only the part of the window after the live cursor.
  const replaced = windowed && input.replaceable && input.mode !== 'incremental';
  return { destination_sync_mode: 'append', warnings: [replaced ? replaces(stream) : duplicates(stream)] };
}

const notice = (code: string, stream: StreamRow, message: string): PlanNotice => ({
  code,
  message,
  stream_name: stream.name,
});

const skipped = (stream: StreamRow, reason: string) =>
  notice('window_unsupported', stream, `${stream.name} is skipped: ${reason}`);

const replaces = (stream: StreamRow) =>
  notice(
    'replaces_window',
    stream,
    `${stream.name}: rows of the window in the destination are replaced by the current rows of the source`,
  );

const duplicates = (stream: StreamRow) =>
  notice('may_duplicate_rows', stream, `${stream.name} is appended to: rows that were loaded before are duplicated`);
