import { Checkbox, Select, TextInput } from '@mantine/core';
import { optionsOf } from '../components/options.ts';
import type { CatalogItem, Stream } from './stream-editor.tsx';

type Choice = Stream['fields'][number];
type Known = CatalogItem['fields'][number];

/** What a field can be at the destination, in words. */
const TYPES = optionsOf<NonNullable<Choice['destination_type']>>({
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'true or false',
  date: 'date',
  timestamp: 'date and time',
  timestamp_tz: 'date and time with zone',
  time: 'time of day',
  json: 'JSON',
  array: 'list',
  binary: 'bytes',
});
export const MASKS = optionsOf<NonNullable<Choice['masking']>>({
  none: 'Not masked',
  hash_sha256: 'Hashed',
  hash_sha256_salted: 'Hashed, salted',
  redact: 'Blanked',
  encrypt: 'Encrypted',
});
const join = (path: readonly string[]) => path.join('.');
const isPlain = ({ selected, destination_name, destination_type, masking }: Choice) =>
  selected !== false && !destination_name && !destination_type && (masking ?? 'none') === 'none';

interface FieldsEditorProps {
  /** What was said; a field that is not in it is loaded as it is. */
  fields: Stream['fields'];
  known: Known[];
  onChange: (fields: Stream['fields']) => void;
}

/** Which fields are loaded, under which name and type, and how they are masked. */
export function FieldsEditor({ fields, known, onChange }: FieldsEditorProps) {
  const said = new Map(fields.map((field) => [join(field.path), field]));
  const set = (path: string[], change: Partial<Choice>) => {
    const choice = { path, ...said.get(join(path)), ...change };
    const others = fields.filter((field) => join(field.path) !== join(path));
    onChange(isPlain(choice) ? others : [...others, choice]);
  };
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
    <div className="table-frame fields-frame" tabIndex={0} role="region" aria-label="Fields">
      <table className="table compact">
        <thead>
          <tr>
            <th>Field</th>
            <th>Type</th>
            <th>Name at the destination</th>
            <th>Type there</th>
            <th>Masking</th>
          </tr>
        </thead>
        <tbody>
          {known.map((field) => (
            <FieldRow
              key={join(field.path)}
              field={field}
              choice={said.get(join(field.path))}
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
      <td className="dimmed nowrap">
        {field.source_type ?? field.type}
        {field.is_primary_key && ' · key'}
      </td>
      <td>
        <TextInput
          size="xs"
          aria-label={`Name of ${name} at the destination`}
          placeholder={field.name}
          value={choice?.destination_name ?? ''}
          disabled={!isLoaded}
          onChange={(event) => set({ destination_name: event.currentTarget.value || null })}
        />
      </td>
      <td>
        <Select
          size="xs"
          aria-label={`Type of ${name} at the destination`}
          data={[{ value: '', label: 'As it is' }, ...TYPES]}
          value={choice?.destination_type ?? ''}
          disabled={!isLoaded}
          onChange={(type) => set({ destination_type: (type || null) as Choice['destination_type'] })}
        />
      </td>
      <td>
        <Select
          size="xs"
          aria-label={`Masking of ${name}`}
          data={MASKS}
          value={choice?.masking ?? 'none'}
          disabled={!isLoaded}
          onChange={(masking) => set({ masking: masking as Choice['masking'] })}
        />
      </td>
    </tr>
  );
}
