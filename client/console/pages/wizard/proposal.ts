import type { RouterInputs } from '../../api.ts';
import type { CatalogItem, DestinationSyncMode, Stream, StreamEdit } from '../../streams/stream-editor.tsx';

/** What was said of streams, by `keyOf`. A stream that is not in it is taken as it is proposed. */
export type Edits = Readonly<Record<string, StreamEdit>>;

/** A stream of the source as the connection would have it. */
export interface Row {
  key: string;
  item: CatalogItem;
  stream: Stream;
  /** Why it could not be loaded so; null: it could. */
  problem: string | null;
}

const PAIRS: Record<Stream['sync_mode'], DestinationSyncMode[]> = {
  full_refresh: ['overwrite', 'append'],
  incremental: ['append_dedup', 'append', 'update', 'soft_delete'],
};
const NEEDS_KEY: DestinationSyncMode[] = ['append_dedup', 'update', 'soft_delete'];
/** Of a destination that nobody has chosen yet. */
const ALL_MODES: DestinationSyncMode[] = ['append', 'overwrite', 'append_dedup', 'update', 'soft_delete'];

export const keyOf = ({ namespace, name }: Pick<CatalogItem, 'namespace' | 'name'>): string =>
  namespace === null ? name : `${namespace}.${name}`;

/** The ways to write that go with a way to read, the best first. */
export const writeModes = (sync_mode: Stream['sync_mode'], destination: readonly DestinationSyncMode[]) =>
  PAIRS[sync_mode].filter((mode) => (destination.length === 0 ? ALL_MODES : destination).includes(mode));

export const rowsOf = (
  catalog: CatalogItem[],
  { edits, destination }: { edits: Edits; destination: readonly DestinationSyncMode[] },
): Row[] =>
  catalog
    .filter(({ change_status }) => change_status !== 'removed')
    .map((item) => {
      const key = keyOf(item);
      const stream = streamOf(item, { edit: edits[key] ?? {}, destination });
      return { key, item, stream, problem: problemOf(stream, item) };
    });

/** A source that tells what is new, and by what key, is read so; every other one in full. */
function proposedMode(item: CatalogItem): Stream['sync_mode'] {
  const { supported_sync_modes: modes, source_defined_cursor, source_defined_primary_key } = item;
  if (source_defined_cursor && source_defined_primary_key && modes.includes('incremental')) return 'incremental';
  return modes.includes('full_refresh') ? 'full_refresh' : (modes[0] ?? 'full_refresh');
}

function streamOf(
  item: CatalogItem,
  { edit, destination }: { edit: StreamEdit; destination: readonly DestinationSyncMode[] },
): Stream {
  const sync_mode = edit.sync_mode ?? proposedMode(item);
  const primary_key = edit.primary_key ?? item.source_defined_primary_key;
  const modes = writeModes(sync_mode, destination);
  const best = modes.find((mode) => primary_key || !NEEDS_KEY.includes(mode)) ?? 'append';
  return {
    id: item.stream_id,
    name: item.name,
    namespace: item.namespace,
    cursor_value: null,
    cursor_updated_at: null,
    row_count_last_run: null,
    selected: edit.selected ?? item.suggested,
    sync_mode,
    destination_sync_mode: edit.destination_sync_mode ?? best,
    cursor_field: edit.cursor_field ?? (sync_mode === 'incremental' ? item.default_cursor_field : null),
    primary_key,
    destination_table: edit.destination_table ?? null,
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
    return 'To be read incrementally it needs a cursor';
  }
  if (NEEDS_KEY.includes(destination_sync_mode) && !mapping?.length && !primary_key?.length) {
    return 'To be written so it needs a primary key';
  }
  if (item.fields.length > 0 && item.fields.every(({ path }) => isLeftOut(stream, path))) return 'No field is loaded';
  return null;
}

const isLeftOut = ({ fields }: Stream, path: readonly string[]) =>
  fields.some((field) => field.selected === false && field.path.join('.') === path.join('.'));

/** What was said of a stream, with one more thing said. A way to write that does not go with it any more is forgotten. */
export function withEdit(before: StreamEdit, change: StreamEdit): StreamEdit {
  const after = { ...before, ...change };
  const { sync_mode, destination_sync_mode: write, ...rest } = after;
  if (change.sync_mode && write && !PAIRS[change.sync_mode].includes(write)) return { ...rest, sync_mode };
  return after;
}

/** As the service is told of it. */
export const requestOf = (
  { stream, item }: Row,
  edits: Edits,
): NonNullable<RouterInputs['connections']['create']['streams']>[number] => ({
  name: item.name,
  namespace: item.namespace,
  sync_mode: stream.sync_mode,
  ...edits[keyOf(item)],
  selected: true,
});
