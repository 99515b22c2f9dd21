import { MultiSelect, NumberInput, Select, Textarea, TextInput } from '@mantine/core';
import { labelOf } from '../components/status.tsx';
import { FieldsEditor } from './fields-editor.tsx';
import { FiltersEditor } from './filters-editor.tsx';
import { MappingEditor } from './mapping-editor.tsx';
import { type PreviewRequest, StreamPreview } from './stream-preview.tsx';
import type { CatalogItem } from '../answers.ts';
import type { DestinationSyncMode, Stream, StreamEdit } from './stream.ts';

export interface StreamEditorProps {
  stream: Stream;
  /** The stream in the source's catalog; undefined once it is gone from the source. */
  item: CatalogItem | undefined;
  destination_modes: readonly DestinationSyncMode[];
  isReverse: boolean;
  disabled: boolean;
  /** What a preview of the stream needs beside its settings; null until source and destination are known. */
  preview: Omit<PreviewRequest, 'stream'> | null;
  onChange: (edit: StreamEdit) => void;
}

/** How one stream is loaded: modes, keys, fields, filters and, for reverse ETL, the field mapping. */
export function StreamEditor(props: StreamEditorProps) {
  const { stream, item, isReverse, disabled, preview, onChange } = props;
  return (
    <>
      <fieldset className="bare-fieldset stack" disabled={disabled}>
        <legend className="hidden">{stream.name}</legend>
        {!item && <p className="stream-error">This stream no longer exists in the source.</p>}
        <Modes {...props} />
        {stream.dataset_sql !== null && (
          <Textarea
            label="Query"
            classNames={{ input: 'mono' }}
            autosize
            minRows={3}
            value={stream.dataset_sql}
            onChange={(event) => onChange({ dataset_sql: event.currentTarget.value })}
          />
        )}
        {isReverse ? (
          <MappingEditor
            mapping={stream.mapping ?? []}
            fields={item?.fields ?? []}
            onChange={(mapping) => onChange({ mapping })}
          />
        ) : (
          item && (
            <FieldsEditor fields={stream.fields} known={item.fields} onChange={(fields) => onChange({ fields })} />
          )
        )}
        <FiltersEditor
          filters={stream.filters}
          fields={item?.fields ?? []}
          onChange={(filters) => onChange({ filters })}
        />
      </fieldset>
      {preview && item && <StreamPreview request={{ ...preview, stream: requestOf(stream) }} />}
    </>
  );
}

/** The settings that decide what a row looks like. */
const requestOf = ({ name, namespace, ...stream }: Stream): PreviewRequest['stream'] => ({
  name,
  namespace,
  sync_mode: stream.sync_mode,
  destination_sync_mode: stream.destination_sync_mode,
  cursor_field: stream.cursor_field,
  primary_key: stream.primary_key,
  destination_table: stream.destination_table,
  fields: stream.fields,
  filters: stream.filters,
  dataset_sql: stream.dataset_sql,
  mapping: stream.mapping,
});

const options = (values: readonly string[]) => values.map((value) => ({ value, label: labelOf(value) }));
const join = (path: readonly string[]) => path.join('.');

function Modes({ stream, item, destination_modes, onChange }: StreamEditorProps) {
  const paths = new Map((item?.fields ?? []).map(({ path }) => [join(path), path]));
  const pathOf = (name: string) => paths.get(name) ?? [name];
  const cursors = (item?.fields ?? [])
    .filter(({ is_cursor_candidate }) => is_cursor_candidate)
    .map(({ path }) => join(path));
  const isIncremental = stream.sync_mode === 'incremental';
  return (
    <div className="fields">
      <Select
        label="Sync mode"
        data={options(item?.supported_sync_modes ?? [stream.sync_mode])}
        value={stream.sync_mode}
        onChange={(mode) => onChange({ sync_mode: mode as Stream['sync_mode'] })}
      />
      <Select
        label="Write mode"
        data={options(destination_modes.length > 0 ? destination_modes : [stream.destination_sync_mode])}
        value={stream.destination_sync_mode}
        onChange={(mode) => onChange({ destination_sync_mode: mode as DestinationSyncMode })}
      />
      {isIncremental && !item?.source_defined_cursor && (
        <Select
          label="Cursor field"
          description="Identifies new and changed rows"
          data={cursors.length > 0 ? cursors : [...paths.keys()]}
          value={stream.cursor_field ? join(stream.cursor_field) : null}
          onChange={(name) => onChange({ cursor_field: name === null ? null : pathOf(name) })}
        />
      )}
      <MultiSelect
        label="Primary key"
        data={[...paths.keys()]}
        value={(stream.primary_key ?? []).map(join)}
        disabled={Boolean(item?.source_defined_primary_key?.length)}
        onChange={(names) => onChange({ primary_key: names.length === 0 ? null : names.map(pathOf) })}
      />
      <TextInput
        label="Destination table"
        placeholder={stream.name}
        value={stream.destination_table ?? ''}
        onChange={(event) => onChange({ destination_table: event.currentTarget.value || null })}
      />
      {isIncremental && (
        <NumberInput
          label="Lookback (days)"
          placeholder="Same as the connection"
          min={0}
          max={365}
          value={stream.backfill_days ?? ''}
          onChange={(days) => onChange({ backfill_days: days === '' ? null : Number(days) })}
        />
      )}
    </div>
  );
}
