import { Autocomplete, Checkbox, Select, TextInput } from '@mantine/core';
import { Icon } from '../components/icon.tsx';
import { optionsOf } from '../components/options.ts';
import { RowsEditor } from './rows-editor.tsx';
import type { CatalogItem, Stream } from './stream-editor.tsx';

type Mapping = NonNullable<Stream['mapping']>[number];

const TRANSFORMS = optionsOf<NonNullable<Mapping['transform']>>({
  none: 'As it is',
  lowercase: 'Lower case',
  uppercase: 'Upper case',
  trim: 'Without blanks around',
  sha256: 'Hashed',
  date_iso: 'As ISO date',
  number: 'As number',
});

interface MappingEditorProps {
  mapping: Mapping[];
  fields: CatalogItem['fields'];
  onChange: (mapping: Mapping[]) => void;
}

/** Reverse ETL: which field of the source goes into which one of the destination. */
export const MappingEditor = ({ mapping, fields, onChange }: MappingEditorProps) => (
  <RowsEditor<Mapping>
    title="Mapping"
    rows={mapping}
    blank={{ source_field: '', destination_field: '' }}
    words={{ add: 'Map a field', remove: 'Remove the row' }}
    onChange={onChange}
  >
    {(one, change) => (
      <>
        <Autocomplete
          aria-label="Field of the source"
          data={fields.map(({ name }) => name)}
          value={one.source_field}
          onChange={(source_field) => change({ source_field })}
        />
        <Icon name="arrow" size={16} />
        <TextInput
          aria-label="Field of the destination"
          placeholder="Field of the destination"
          value={one.destination_field}
          onChange={(event) => change({ destination_field: event.currentTarget.value })}
        />
        <Select
          aria-label="Transformation"
          data={TRANSFORMS}
          value={one.transform ?? 'none'}
          allowDeselect={false}
          onChange={(transform) => change({ transform: transform as Mapping['transform'] })}
        />
        <Checkbox
          label="Finds the record"
          checked={one.is_match_key ?? false}
          onChange={(event) => change({ is_match_key: event.currentTarget.checked })}
        />
      </>
    )}
  </RowsEditor>
);
