import type { RouterInputs } from '../../api.ts';
import type { CatalogItem } from '../../answers.ts';
import type { DestinationSyncMode, Stream, StreamEdit } from '../../streams/stream.ts';

/** Edited settings of streams, by `keyOf`. All others keep the suggested settings. */
export type StreamEdits = Readonly<Record<string, StreamEdit>>;

/** A stream of the source, as the connection would load it. */
export interface WizardStream {
  key: string;
  item: CatalogItem;
  stream: Stream;
  /** Why this sync mode is suggested; null after another one was selected. */
  reason: string | null;
  /** Why it cannot be loaded with these settings; null if it can. */
  problem: string | null;
  /** Whether it has the modes of the template, which the service would not select by itself. */
  isOfTemplate: boolean;
}

/** The modes of a template. */
export type TemplateModes = Pick<Stream, 'sync_mode' | 'destination_sync_mode'>;

const WRITE_MODES: Record<Stream['sync_mode'], DestinationSyncMode[]> = {
  full_refresh: ['overwrite', 'append'],
  incremental: ['append_dedup', 'append', 'update', 'soft_delete'],
};
const NEEDS_KEY: DestinationSyncMode[] = ['append_dedup', 'update', 'soft_delete'];
/** Used until a destination is selected. */
const ALL_MODES: DestinationSyncMode[] = ['append', 'overwrite', 'append_dedup', 'update', 'soft_delete'];

export const keyOf = ({ namespace, name }: Pick<CatalogItem, 'namespace' | 'name'>): string =>
  namespace === null ? name : `${namespace}.${name}`;

const KEYED: DestinationSyncMode[] = ['append_dedup'];

/** Applications have no table that a full read could replace. They get the rows that differ, by their key. */
const comparesRows = (destination: readonly DestinationSyncMode[]) =>
  destination.includes('append_dedup') && !destination.includes('overwrite');

/** The write modes for a sync mode, the best first. */
export const writeModes = (sync_mode: Stream['sync_mode'], destination: readonly DestinationSyncMode[]) =>
  [...WRITE_MODES[sync_mode], ...(sync_mode === 'full_refresh' && comparesRows(destination) ? KEYED : [])].filter(
    (mode) => (destination.length === 0 ? ALL_MODES : destination).includes(mode),
  );

export const rowsOf = (
  catalog: CatalogItem[],
  {
    edits,
    destination,
    template,
  }: { edits: StreamEdits; destination: readonly DestinationSyncMode[]; template: TemplateModes | null },
): WizardStream[] =>
  catalog
    .filter(({ change_status }) => change_status !== 'removed')
    .map((item) => {
      const key = keyOf(item);
      const suggestion = suggestionOf(item, { destination, template });
      const stream = streamOf(item, { edit: edits[key] ?? {}, suggestion, destination, template });
      const reason = stream.sync_mode === suggestion.sync_mode ? suggestion.reason : null;
      const isOfTemplate =
        stream.sync_mode === template?.sync_mode && stream.destination_sync_mode === template.destination_sync_mode;
      return { key, item, stream, reason, problem: problemOf(stream, item), isOfTemplate };
    });

/**
 * The sync mode of the template if the stream has what it needs; otherwise what the service suggests, unless the
 * destination cannot merge the rows of an incremental read by their key.
 */
function suggestionOf(
  item: CatalogItem,
  { destination, template }: { destination: readonly DestinationSyncMode[]; template: TemplateModes | null },
) {
  const { suggested_settings, supported_sync_modes } = item;
  if (template && template.sync_mode !== suggested_settings.sync_mode && canRead(item, template.sync_mode)) {
    return { ...suggested_settings, sync_mode: template.sync_mode, reason: 'As in the template' };
  }
  const merges = destination.length === 0 || destination.includes('append_dedup');
  if (merges || suggested_settings.sync_mode === 'full_refresh' || !supported_sync_modes.includes('full_refresh')) {
    return suggested_settings;
  }
  const reason = 'The destination cannot merge changed rows by their key';
  return { ...suggested_settings, sync_mode: 'full_refresh' as const, cursor_field: null, reason };
}

const canRead = (item: CatalogItem, sync_mode: Stream['sync_mode']): boolean =>
  item.supported_sync_modes.includes(sync_mode) &&
  (sync_mode === 'full_refresh' || item.source_defined_cursor || item.default_cursor_field !== null);

interface StreamInput {
  edit: StreamEdit;
  suggestion: CatalogItem['suggested_settings'];
  destination: readonly DestinationSyncMode[];
  template: TemplateModes | null;
}

function streamOf(item: CatalogItem, { edit, suggestion, destination, template }: StreamInput): Stream {
  const sync_mode = edit.sync_mode ?? suggestion.sync_mode;
  const primary_key = edit.primary_key ?? suggestion.primary_key;
  const modes = writeModes(sync_mode, destination);
  const fits = (mode: DestinationSyncMode) => modes.includes(mode) && (primary_key || !NEEDS_KEY.includes(mode));
  const preferred = sync_mode === template?.sync_mode ? [template.destination_sync_mode] : [];
  const best = [...preferred, ...modes].find(fits) ?? 'append';
  return {
    id: item.stream_id,
    name: item.name,
    namespace: item.namespace,
    cursor_value: null,
    cursor_updated_at: null,
    row_count_last_run: null,
    fresh_at: null,
    parked: null,
    selected: edit.selected ?? item.suggested,
    sync_mode,
    destination_sync_mode: edit.destination_sync_mode ?? best,
    cursor_field: edit.cursor_field ?? (sync_mode === 'incremental' ? item.default_cursor_field : null),
    primary_key,
    destination_table: edit.destination_table ?? null,
    shared_destination_table: edit.shared_destination_table ?? false,
    backfill_days: edit.backfill_days ?? null,
    fields: edit.fields ?? [],
    filters: edit.filters ?? [],
    dataset_sql: edit.dataset_sql ?? null,
    mapping: edit.mapping ?? null,
  };
}

function problemOf(stream: Stream, item: CatalogItem): string | null {
  if (!stream.selected) return null;
  const { sync_mode, cursor_field, primary_key, destination_sync_mode, mapping } = stream;
  if (sync_mode === 'incremental' && !cursor_field?.length && !item.source_defined_cursor) {
    return 'Select a cursor field';
  }
  if (NEEDS_KEY.includes(destination_sync_mode) && !mapping?.length && !primary_key?.length) {
    return 'Select a primary key';
  }
  if (item.fields.length > 0 && item.fields.every(({ path }) => isExcluded(stream, path)))
    return 'Select at least one field';
  return null;
}

const isExcluded = ({ fields }: Stream, path: readonly string[]) =>
  fields.some((field) => field.selected === false && field.path.join('.') === path.join('.'));

/** Merges an edit. Drops a write mode that does not fit the new sync mode. */
export function withEdit(before: StreamEdit, change: StreamEdit): StreamEdit {
  const after = { ...before, ...change };
  const { sync_mode, destination_sync_mode: write, ...rest } = after;
  if (change.sync_mode && write && !WRITE_MODES[change.sync_mode].includes(write)) return { ...rest, sync_mode };
  return after;
}

/** The stream as sent to the service. */
export const requestOf = (
  { stream, item, isOfTemplate }: WizardStream,
  edits: StreamEdits,
): NonNullable<RouterInputs['connections']['create']['streams']>[number] => ({
  name: item.name,
  namespace: item.namespace,
  sync_mode: stream.sync_mode,
  ...(isOfTemplate && { destination_sync_mode: stream.destination_sync_mode }),
  ...edits[keyOf(item)],
  selected: true,
});
