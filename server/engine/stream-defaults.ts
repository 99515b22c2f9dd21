import type { AnyDestination, DestinationSyncMode, StreamSchema, SyncMode } from '../connectors/define.ts';

/** What a stream gets when nobody says anything about it. */
export function defaultSettings(stream: StreamSchema, destination: AnyDestination) {
  const keyed = stream.source_defined_primary_key !== null;
  const incremental =
    stream.source_defined_cursor &&
    keyed &&
    stream.supported_sync_modes.includes('incremental') &&
    destination.supported_destination_sync_modes.includes('append_dedup');
  const sync_mode = incremental ? 'incremental' : (stream.supported_sync_modes[0] ?? 'full_refresh');
  const plain = stream.supported_sync_modes.includes('full_refresh') ? 'full_refresh' : sync_mode;
  const chosen = incremental ? sync_mode : plain;
  return {
    selected: true,
    sync_mode: chosen,
    destination_sync_mode: bestDestinationMode(chosen, keyed, destination),
    cursor_field: chosen === 'incremental' ? stream.default_cursor_field : null,
    primary_key: stream.source_defined_primary_key,
    destination_table: null as string | null,
    backfill_days: null,
    fields: [],
    filters: [],
    dataset_sql: null,
    mapping: null,
  };
}

export function bestDestinationMode(mode: SyncMode, keyed: boolean, destination: AnyDestination): DestinationSyncMode {
  const wishes: DestinationSyncMode[] =
    mode === 'full_refresh' ? ['overwrite', 'append'] : keyed ? ['append_dedup', 'append'] : ['append'];
  return wishes.find((wish) => destination.supported_destination_sync_modes.includes(wish)) ?? 'append';
}
