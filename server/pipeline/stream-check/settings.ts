import type { StreamRow } from '../../../db/schema/index.ts';
import type {
  AnyDestination,
  AnySource,
  DestinationSyncMode,
  Filter,
  StreamSchema,
  SyncMode,
} from '../../connectors/contract/connector.ts';
import type { FieldMapping } from '../field-mapping.ts';
import type { Overrides } from '../overrides.ts';
import type { FieldChoice } from '../transfer-plan.ts';

/** Settings of a stream that users can change. */
export interface StreamSettings {
  selected: boolean;
  sync_mode: SyncMode;
  destination_sync_mode: DestinationSyncMode;
  cursor_field: string[] | null;
  primary_key: string[][] | null;
  destination_table: string | null;
  /** Other streams may write to the same table. */
  shared_destination_table: boolean;
  backfill_days: number | null;
  fields: FieldChoice[];
  filters: Filter[];
  dataset_sql: string | null;
  mapping: FieldMapping[] | null;
}

/** The settings of a stored stream. */
export const settingsOf = (row: StreamRow): StreamSettings => ({
  selected: row.selected,
  sync_mode: row.sync_mode,
  destination_sync_mode: row.destination_sync_mode,
  cursor_field: row.cursor_field,
  primary_key: row.primary_key,
  destination_table: row.destination_table,
  shared_destination_table: row.shared_destination_table,
  backfill_days: row.backfill_days,
  fields: row.fields as StreamSettings['fields'],
  filters: row.filters as StreamSettings['filters'],
  dataset_sql: row.dataset_sql,
  mapping: row.mapping as StreamSettings['mapping'],
});

/** What the settings of a stream are checked against. */
export interface StreamContext {
  /** From the catalog, with overrides applied. */
  stream: StreamSchema;
  overrides: Overrides;
  source: AnySource;
  destination: AnyDestination;
  /** The connection goes from a database into an application. */
  reverse_etl: boolean;
}

/** Meaningful pairs. Source and destination limit them further. */
const MODE_PAIRS: Record<SyncMode, DestinationSyncMode[]> = {
  // With soft_delete, a full read marks the rows that it no longer contains.
  full_refresh: ['append', 'overwrite', 'soft_delete'],
  incremental: ['append', 'append_dedup', 'update', 'soft_delete'],
};

type Modes = Pick<StreamSettings, 'sync_mode' | 'destination_sync_mode'>;

/** Whether a full read is merged by its key, so that only the rows that differ from the last run are sent. */
export const sendsDifferences = ({ sync_mode, destination_sync_mode }: Modes, destination: AnyDestination): boolean =>
  sync_mode === 'full_refresh' && destination_sync_mode === 'append_dedup' && destination.identifyRows !== undefined;

/** Whether the two modes make a meaningful pair at this destination. */
export const isPair = (modes: Modes, destination: AnyDestination): boolean =>
  MODE_PAIRS[modes.sync_mode].includes(modes.destination_sync_mode) || sendsDifferences(modes, destination);

/** Rows of these modes are merged by their key. */
export const NEEDS_KEY: DestinationSyncMode[] = ['append_dedup', 'update', 'soft_delete'];
