import { Select, TextInput } from '@mantine/core';
import { optionsOf } from '../components/options.ts';
import { RowsEditor } from './rows-editor.tsx';
import type { CatalogItem, Stream } from './stream-editor.tsx';

type Filter = Stream['filters'][number];

const OPERATORS: Record<Filter['operator'], string> = {
  eq: 'is',
  ne: 'is not',
  gt: 'is more than',
  gte: 'is at least',
  lt: 'is less than',
  lte: 'is at most',
  in: 'is one of',
  not_in: 'is none of',
  contains: 'contains',
  starts_with: 'starts with',
  is_null: 'is empty',
  is_not_null: 'is not empty',
  between: 'is between',
};
const LISTS = new Set(['in', 'not_in', 'between']);
const ALONE = new Set(['is_null', 'is_not_null']);

interface FiltersEditorProps {
  filters: Filter[];
  fields: CatalogItem['fields'];
  onChange: (filters: Filter[]) => void;
}

/** Only rows that all of the filters let through are loaded. */
export function FiltersEditor({ filters, fields, onChange }: FiltersEditorProps) {
  const first = fields[0]?.name ?? '';
  return (
    <RowsEditor<Filter>
      title="Filters"
      rows={filters}
      blank={{ field: first, operator: 'eq', value: '' }}
      words={{ add: 'Add a filter', remove: 'Remove the filter' }}
      onChange={onChange}
    >
      {(filter, change) => (
        <>
          <Select
            aria-label="Field of the filter"
            data={[...new Set([...fields.map(({ name }) => name), filter.field])]}
            value={filter.field}
            onChange={(field) => change({ field: field ?? first })}
          />
          <Select
            aria-label="Condition of the filter"
            data={optionsOf(OPERATORS)}
            value={filter.operator}
            allowDeselect={false}
            onChange={(operator) =>
              change({
                operator: operator as Filter['operator'],
                value: ALONE.has(operator ?? '') ? null : filter.value,
              })
            }
          />
          {!ALONE.has(filter.operator) && (
            <TextInput
              className="grow"
              aria-label="Value of the filter"
              placeholder={LISTS.has(filter.operator) ? 'By commas' : 'Value'}
              value={Array.isArray(filter.value) ? filter.value.join(', ') : String(filter.value ?? '')}
              onChange={(event) => change({ value: valueOf(filter.operator, event.currentTarget.value) })}
            />
          )}
        </>
      )}
    </RowsEditor>
  );
}

const valueOf = (operator: string, text: string): Filter['value'] =>
  LISTS.has(operator) ? text.split(',').map((one) => one.trimStart()) : text;
