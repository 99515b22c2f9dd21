import { ActionIcon, Autocomplete, Button, Checkbox, Select, TextInput } from '@mantine/core';
import { Icon } from '../parts/icon.tsx';
import type { CatalogItem, Stream } from './stream-editor.tsx';

type Mapping = NonNullable<Stream['mapping']>[number];

const TRANSFORMS = [
  { value: 'none', label: 'As it is' },
  { value: 'lowercase', label: 'Lower case' },
  { value: 'uppercase', label: 'Upper case' },
  { value: 'trim', label: 'Without blanks around' },
  { value: 'sha256', label: 'Hashed' },
  { value: 'date_iso', label: 'As ISO date' },
  { value: 'number', label: 'As number' },
];

interface MappingEditorProps {
  mapping: Mapping[];
  fields: CatalogItem['fields'];
  onChange: (mapping: Mapping[]) => void;
}

/** Reverse ETL: which field of the source goes into which one of the destination. */
export function MappingEditor({ mapping, fields, onChange }: MappingEditorProps) {
  const replace = (at: number, change: Partial<Mapping>) =>
    onChange(mapping.map((one, index) => (index === at ? { ...one, ...change } : one)));
  return (
    <div className="stack">
      <h3>Mapping</h3>
      {mapping.map((one, index) => (
        // Rows of the mapping have nothing but their place.
        // oxlint-disable-next-line react/no-array-index-key
        <div key={index} className="row">
          <Autocomplete
            aria-label="Field of the source"
            data={fields.map(({ name }) => name)}
            value={one.source_field}
            onChange={(source_field) => replace(index, { source_field })}
          />
          <Icon name="arrow" size={16} />
          <TextInput
            aria-label="Field of the destination"
            placeholder="Field of the destination"
            value={one.destination_field}
            onChange={(event) => replace(index, { destination_field: event.currentTarget.value })}
          />
          <Select
            aria-label="Transformation"
            data={TRANSFORMS}
            value={one.transform ?? 'none'}
            onChange={(transform) => replace(index, { transform: transform as Mapping['transform'] })}
          />
          <Checkbox
            label="Finds the record"
            checked={one.is_match_key ?? false}
            onChange={(event) => replace(index, { is_match_key: event.currentTarget.checked })}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label="Remove the row"
            onClick={() => onChange(mapping.filter((_, at) => at !== index))}
          >
            <Icon name="close" size={16} />
          </ActionIcon>
        </div>
      ))}
      <Button
        variant="light"
        size="xs"
        className="fit"
        leftSection={<Icon name="add" size={14} />}
        onClick={() => onChange([...mapping, { source_field: '', destination_field: '' }])}
      >
        Map a field
      </Button>
    </div>
  );
}
