import { Autocomplete, Checkbox, Select, TextInput } from '@mantine/core';
import { Icon } from '../components/icon.tsx';
import { optionsOf } from '../components/options.ts';
import { RowsEditor } from './rows-editor.tsx';
import type { CatalogItem } from '../answers.ts';
import type { Stream } from './stream.ts';

type Mapping = NonNullable<Stream['mapping']>[number];

const TRANSFORMS = optionsOf<NonNullable<Mapping['transform']>>({
  none: 'Unchanged',
  lowercase: 'Lowercase',
  uppercase: 'Uppercase',
  trim: 'Trim spaces',
  sha256: 'Hash (SHA-256)',
  date_iso: 'ISO date',
  number: 'Number',
});

interface MappingEditorProps {
  mapping: Mapping[];
  fields: CatalogItem['fields'];
  onChange: (mapping: Mapping[]) => void;
}

/** Reverse ETL: which source field goes into which destination field. */
export const MappingEditor = ({ mapping, fields, onChange }: MappingEditorProps) => (
  <RowsEditor<Mapping>
    title="Field mapping"
    rows={mapping}
    blank={{ source_field: '', destination_field: '' }}
    labels={{ add: 'Add field mapping', remove: 'Remove field mapping' }}
    onChange={onChange}
  >
    {(one, change) => (
      <>
        <Autocomplete
          aria-label="Source field"
          data={fields.map(({ name }) => name)}
          value={one.source_field}
          onChange={(source_field) => change({ source_field })}
        />
        <Icon name="arrow" size={16} />
        <TextInput
          aria-label="Destination field"
          placeholder="Destination field"
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
          label="Match key"
          checked={one.is_match_key ?? false}
          onChange={(event) => change({ is_match_key: event.currentTarget.checked })}
        />
      </>
    )}
  </RowsEditor>
);
