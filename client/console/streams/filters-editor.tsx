import { Select, TextInput } from '@mantine/core';
import { optionsOf } from '../components/options.ts';
import { RowsEditor } from './rows-editor.tsx';
import type { CatalogItem } from '../answers.ts';
import type { Stream } from './stream.ts';

type Filter = Stream['filters'][number];

const OPERATORS: Record<Filter['operator'], string> = {
  eq: 'is',
  ne: 'is not',
  gt: 'is greater than',
  gte: 'is at least',
  lt: 'is less than',
  lte: 'is at most',
  in: 'is one of',
  not_in: 'is not one of',
  contains: 'contains',
  starts_with: 'starts with',
  is_null: 'is empty',
  is_not_null: 'is not empty',
  between: 'is between',
};
const LISTS = new Set(['in', 'not_in', 'between']);
const WITHOUT_VALUE = new Set(['is_null', 'is_not_null']);

interface FiltersEditorProps {
  filters: Filter[];
  fields: CatalogItem['fields'];
  onChange: (filters: Filter[]) => void;
}

/** Rows are loaded only if they pass every filter. */
export function FiltersEditor({ filters, fields, onChange }: FiltersEditorProps) {
  const first = fields[0]?.name ?? '';
  return (
    <RowsEditor<Filter>
      title="Filters"
      rows={filters}
      blank={{ field: first, operator: 'eq', value: '' }}
      labels={{ add: 'Add filter', remove: 'Remove filter' }}
      onChange={onChange}
    >
      {(filter, change) => (
        <>
          <Select
            aria-label="Filter field"
            data={[...new Set([...fields.map(({ name }) => name), filter.field])]}
            value={filter.field}
            onChange={(field) => change({ field: field ?? first })}
          />
          <Select
            aria-label="Filter condition"
            data={optionsOf(OPERATORS)}
            value={filter.operator}
            allowDeselect={false}
            onChange={(operator) =>
              change({
                operator: operator as Filter['operator'],
                value: WITHOUT_VALUE.has(operator ?? '') ? null : filter.value,
              })
            }
          />
          {!WITHOUT_VALUE.has(filter.operator) && (
            <TextInput
              className="grow"
              aria-label="Filter value"
              placeholder={LISTS.has(filter.operator) ? 'Values, separated by commas' : 'Value'}
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
