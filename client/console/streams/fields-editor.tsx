import { Checkbox, Select, TextInput } from '@mantine/core';
import { optionsOf } from '../components/options.ts';
import type { CatalogItem } from '../answers.ts';
import type { Stream } from './stream.ts';

type Choice = Stream['fields'][number];
type Known = CatalogItem['fields'][number];

/** Destination types of a field. */
const TYPES = optionsOf<NonNullable<Choice['destination_type']>>({
  string: 'Text',
  integer: 'Integer',
  number: 'Number',
  boolean: 'Boolean',
  date: 'Date',
  timestamp: 'Timestamp',
  timestamp_tz: 'Timestamp with time zone',
  time: 'Time',
  json: 'JSON',
  array: 'Array',
  binary: 'Binary',
});
export const MASKING_OPTIONS = optionsOf<NonNullable<Choice['masking']>>({
  none: 'None',
  hash_sha256: 'Hash',
  hash_sha256_salted: 'Salted hash',
  redact: 'Redact',
  encrypt: 'Encrypt',
});
const join = (path: readonly string[]) => path.join('.');
const isUnchanged = ({ selected, destination_name, destination_type, masking }: Choice) =>
  selected !== false && !destination_name && !destination_type && (masking ?? 'none') === 'none';

interface FieldsEditorProps {
  /** Only fields with settings; any other field is loaded unchanged. */
  fields: Stream['fields'];
  known: Known[];
  onChange: (fields: Stream['fields']) => void;
}

/** Which fields are loaded, with destination name, destination type and masking. */
export function FieldsEditor({ fields, known, onChange }: FieldsEditorProps) {
  const settings = new Map(fields.map((field) => [join(field.path), field]));
  const set = (path: string[], change: Partial<Choice>) => {
    const choice = { path, ...settings.get(join(path)), ...change };
    const others = fields.filter((field) => join(field.path) !== join(path));
    onChange(isUnchanged(choice) ? others : [...others, choice]);
  };
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
    <div className="table-frame fields-frame" tabIndex={0} role="region" aria-label="Fields">
      <table className="table compact stacked">
        <thead>
          <tr>
            <th>Field</th>
            <th>Type</th>
            <th>Destination name</th>
            <th>Destination type</th>
            <th>Masking</th>
          </tr>
        </thead>
        <tbody>
          {known.map((field) => (
            <FieldRow
              key={join(field.path)}
              field={field}
              choice={settings.get(join(field.path))}
              set={(change) => set(field.path, change)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function FieldRow({
  field,
  choice,
  set,
}: {
  field: Known;
  choice: Choice | undefined;
  set: (change: Partial<Choice>) => void;
}) {
  const name = join(field.path);
  const isLoaded = choice?.selected !== false;
  return (
    <tr>
      <td>
        <Checkbox
          label={<span className="mono">{name}</span>}
          checked={isLoaded}
          onChange={(event) => set({ selected: event.currentTarget.checked })}
        />
      </td>
      <td className="dimmed nowrap" data-label="Type">
        {field.source_type ?? field.type}
        {field.is_primary_key && ' · key'}
      </td>
      <td data-label="Destination name">
        <TextInput
          size="xs"
          aria-label={`Destination name of ${name}`}
          placeholder={field.name}
          value={choice?.destination_name ?? ''}
          disabled={!isLoaded}
          onChange={(event) => set({ destination_name: event.currentTarget.value || null })}
        />
      </td>
      <td data-label="Destination type">
        <Select
          size="xs"
          aria-label={`Destination type of ${name}`}
          data={[{ value: '', label: 'Unchanged' }, ...TYPES]}
          value={choice?.destination_type ?? ''}
          disabled={!isLoaded}
          onChange={(type) => set({ destination_type: (type || null) as Choice['destination_type'] })}
        />
      </td>
      <td data-label="Masking">
        <Select
          size="xs"
          aria-label={`Masking of ${name}`}
          data={MASKING_OPTIONS}
          value={choice?.masking ?? 'none'}
          disabled={!isLoaded}
          onChange={(masking) => set({ masking: masking as Choice['masking'] })}
        />
      </td>
    </tr>
  );
}
