import { ActionIcon, Button, Select, TextInput } from '@mantine/core';
import { Icon } from '../parts/icon.tsx';
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
  const replace = (at: number, change: Partial<Filter>) =>
    onChange(filters.map((filter, index) => (index === at ? { ...filter, ...change } : filter)));
  const first = fields[0]?.name ?? '';
  return (
    <div className="stack">
      <h3>Filters</h3>
      {filters.map((filter, index) => (
        // Filters have nothing but their place.
        // oxlint-disable-next-line react/no-array-index-key
        <div key={index} className="row">
          <Select
            aria-label="Field of the filter"
            data={[...new Set([...fields.map(({ name }) => name), filter.field])]}
            value={filter.field}
            onChange={(field) => replace(index, { field: field ?? first })}
          />
          <Select
            aria-label="Condition of the filter"
            data={Object.entries(OPERATORS).map(([value, label]) => ({ value, label }))}
            value={filter.operator}
            onChange={(operator) =>
              replace(index, {
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
              onChange={(event) => replace(index, { value: valueOf(filter.operator, event.currentTarget.value) })}
            />
          )}
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label="Remove the filter"
            onClick={() => onChange(filters.filter((_, at) => at !== index))}
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
        onClick={() => onChange([...filters, { field: first, operator: 'eq', value: '' }])}
      >
        Add a filter
      </Button>
    </div>
  );
}

const valueOf = (operator: string, text: string): Filter['value'] =>
  LISTS.has(operator) ? text.split(',').map((one) => one.trimStart()) : text;
