import type { AnyDestination, DestinationSyncMode, StreamSchema, SyncMode } from '../connectors/contract/connector.ts';

/** The settings of a stream for which the request sets none. */
export function defaultSettings(stream: StreamSchema, destination: AnyDestination) {
  const keyed = stream.source_defined_primary_key !== null;
  const incremental =
    stream.source_defined_cursor &&
    keyed &&
    stream.supported_sync_modes.includes('incremental') &&
    destination.supported_destination_sync_modes.includes('append_dedup');
  const sync_mode = incremental ? 'incremental' : (stream.supported_sync_modes[0] ?? 'full_refresh');
  const plain = stream.supported_sync_modes.includes('full_refresh') ? 'full_refresh' : sync_mode;
  const effective = incremental ? sync_mode : plain;
  return {
    selected: true,
    sync_mode: effective,
    destination_sync_mode: bestDestinationMode({ stream, sync_mode: effective, keyed }, destination),
    cursor_field: effective === 'incremental' ? stream.default_cursor_field : null,
    primary_key: stream.source_defined_primary_key,
    destination_table: null as string | null,
    shared_destination_table: false,
    backfill_days: null,
    fields: [],
    filters: [],
    dataset_sql: null,
    mapping: null,
  };
}

interface Reading {
  stream: StreamSchema;
  sync_mode: SyncMode;
  keyed: boolean;
}

export function bestDestinationMode({ stream, sync_mode, keyed }: Reading, destination: AnyDestination) {
  const preferred: DestinationSyncMode[] =
    sync_mode === 'full_refresh' ? ['overwrite', 'append'] : keyed ? ['append_dedup', 'append'] : ['append'];
  const changes = givesChanges(stream, { sync_mode });
  const can = (mode: DestinationSyncMode) =>
    destination.supported_destination_sync_modes.includes(mode) && (!changes || takesChanges(destination, mode));
  return preferred.find(can) ?? 'append';
}

/** Whether the stream is read as changes (inserts, updates, deletes) rather than as rows. */
export const givesChanges = (
  schema: StreamSchema,
  { sync_mode, dataset_sql }: { sync_mode: SyncMode; dataset_sql?: string | null },
) => schema.change_log === true && sync_mode === 'incremental' && (dataset_sql ?? schema.dataset_sql ?? null) === null;

/** Whether the destination applies changes in this mode. If not, a deleted row would be written as an existing one. */
export const takesChanges = (destination: AnyDestination, mode: DestinationSyncMode) =>
  mode === 'append' || destination.applies_changes === true;
