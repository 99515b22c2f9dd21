import type { StreamRow } from '../../../../db/schema/index.ts';
import type {
  AnyDestination,
  AnySource,
  DestinationSyncMode,
  StreamSchema,
  SyncMode,
} from '../../../connectors/contract/connector.ts';
import { bestDestinationMode, givesChanges, takesChanges } from '../../../pipeline/stream-defaults.ts';
import { badRequest } from '../../../platform/errors.ts';
import { checkFields } from './fields.ts';
import type { ConnectionField, ConnectionStreamRequest, StreamFilter } from './schema.ts';

/** Settings of a stream that users can change. */
export type StreamSettings = Required<Omit<ConnectionStreamRequest, 'name' | 'namespace'>>;

/** Meaningful pairs. Source and destination limit them further. */
const PAIRS: Record<SyncMode, DestinationSyncMode[]> = {
  // With soft_delete, a full read marks the rows that it no longer contains.
  full_refresh: ['append', 'overwrite', 'soft_delete'],
  incremental: ['append', 'append_dedup', 'update', 'soft_delete'],
};
const NEEDS_KEY: DestinationSyncMode[] = ['append_dedup', 'update', 'soft_delete'];

export interface RequestedStreamField {
  stream: StreamSchema;
  source: AnySource;
  destination: AnyDestination;
  /** The connection goes from a database into an application. */
  reverse_etl: boolean;
  /** Current settings, which may exclude fields that the source no longer has. */
  stored?: StreamSettings;
  /** Path of the stream in the request, for `field` of errors: `streams.0`. */
  field: string;
}

/**
 * Merges a request into the current settings (the stream's own, or the defaults). When the request sets one of the two
 * modes and the other does not fit it, the other changes, too.
 */
export function mergeSettings(
  base: StreamSettings,
  request: ConnectionStreamRequest | null,
  place: Pick<RequestedStreamField, 'stream' | 'destination'>,
): StreamSettings {
  const { name: _name, namespace: _namespace, ...wanted } = request ?? { name: '' };
  const given = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined));
  const merged: StreamSettings = { ...base, ...given };
  const keyed = merged.primary_key !== null || place.stream.source_defined_primary_key !== null;
  if (!PAIRS[merged.sync_mode].includes(merged.destination_sync_mode)) {
    if (!wanted.destination_sync_mode) {
      const reading = { stream: place.stream, sync_mode: merged.sync_mode, keyed };
      merged.destination_sync_mode = bestDestinationMode(reading, place.destination);
    } else if (!wanted.sync_mode) {
      merged.sync_mode = merged.sync_mode === 'incremental' ? 'full_refresh' : 'incremental';
    }
  }
  if (merged.sync_mode === 'incremental') merged.cursor_field ??= place.stream.default_cursor_field;
  merged.primary_key ??= place.stream.source_defined_primary_key;
  if (merged.mapping?.length === 0) merged.mapping = null;
  return merged;
}

/**
 * Checks settings against the source's catalog and the destination's capabilities.
 * @throws ApiError 400 `unsupported_sync_mode`, `cursor_required`, `primary_key_required`, `unknown_field`,
 * `changes_unsupported`, `duplicate_destination_column`, `reverse_etl_only`, `datasets_unsupported`, each with `field`.
 */
export function checkSettings(settings: StreamSettings, place: RequestedStreamField): void {
  checkFields(settings, place);
  if (!settings.selected) return;
  const { stream, destination, field } = place;
  const { sync_mode, destination_sync_mode } = settings;
  const refuse = (code: string, key: string, message: string) =>
    badRequest(code, `${stream.name}: ${message}`, { field: `${field}.${key}`, stream_name: stream.name });
  if (!stream.supported_sync_modes.includes(sync_mode)) {
    throw refuse('unsupported_sync_mode', 'sync_mode', `the source cannot be read ${sync_mode}`);
  }
  const writable = destination.supported_destination_sync_modes.includes(destination_sync_mode);
  if (!writable || !PAIRS[sync_mode].includes(destination_sync_mode)) {
    const why = writable ? `does not go with ${sync_mode}` : 'is not supported by the destination';
    throw refuse('unsupported_sync_mode', 'destination_sync_mode', `${destination_sync_mode} ${why}`);
  }
  if (givesChanges(stream, settings) && !takesChanges(destination, destination_sync_mode)) {
    const why = `${destination.display_name} cannot apply deletes: write by append, which keeps each change as a row`;
    throw refuse('changes_unsupported', 'destination_sync_mode', why);
  }
  if (sync_mode === 'incremental' && !settings.cursor_field?.length && !stream.source_defined_cursor) {
    throw refuse('cursor_required', 'cursor_field', 'an incremental sync needs a cursor_field');
  }
  const keyed = settings.mapping ? settings.mapping.some((one) => one.is_match_key) : settings.primary_key?.length;
  if (NEEDS_KEY.includes(destination_sync_mode) && !keyed) {
    if (settings.mapping) throw refuse('primary_key_required', 'mapping', `${destination_sync_mode} needs a match key`);
    throw refuse('primary_key_required', 'primary_key', `${destination_sync_mode} needs a primary_key`);
  }
}

/** The settings of a stored stream. */
export const settingsOf = (row: StreamRow): StreamSettings => ({
  selected: row.selected,
  sync_mode: row.sync_mode,
  destination_sync_mode: row.destination_sync_mode,
  cursor_field: row.cursor_field,
  primary_key: row.primary_key,
  destination_table: row.destination_table,
  backfill_days: row.backfill_days,
  fields: row.fields as ConnectionField[],
  filters: row.filters as StreamFilter[],
  dataset_sql: row.dataset_sql,
  mapping: row.mapping as StreamSettings['mapping'],
});
