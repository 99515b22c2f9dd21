import { ActionIcon, Button } from '@mantine/core';
import type { ReactNode } from 'react';
import { Icon } from '../components/icon.tsx';

interface RowsEditorProps<Row> {
  title: string;
  rows: Row[];
  /** What a new row begins as. */
  blank: Row;
  /** On the button that adds one, and for who does not see the cross that removes one. */
  words: { add: string; remove: string };
  onChange: (rows: Row[]) => void;
  /** The fields of one row. */
  children: (row: Row, change: (by: Partial<Row>) => void) => ReactNode;
}

/** A list of rows that are added, changed and removed: filters, mappings. */
export function RowsEditor<Row>({ title, rows, blank, words, onChange, children }: RowsEditorProps<Row>) {
  return (
    <div className="stack">
      <h3>{title}</h3>
      {rows.map((row, index) => (
        // Such rows have nothing but their place.
        // oxlint-disable-next-line react/no-array-index-key
        <div key={index} className="row">
          {children(row, (by) => onChange(rows.map((one, at) => (at === index ? { ...one, ...by } : one))))}
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={words.remove}
            onClick={() => onChange(rows.filter((_, at) => at !== index))}
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
        onClick={() => onChange([...rows, blank])}
      >
        {words.add}
      </Button>
    </div>
  );
}
