import { ActionIcon, Button } from '@mantine/core';
import type { ReactNode } from 'react';
import { Icon } from '../components/icon.tsx';

interface RowsEditorProps<Row> {
  title: string;
  rows: Row[];
  /** Initial value of a new row. */
  blank: Row;
  /** Labels of the buttons. */
  labels: { add: string; remove: string };
  onChange: (rows: Row[]) => void;
  /** The fields of one row. */
  children: (row: Row, change: (by: Partial<Row>) => void) => ReactNode;
}

/** An editable list of rows, such as filters or field mappings. */
export function RowsEditor<Row>({ title, rows, blank, labels, onChange, children }: RowsEditorProps<Row>) {
  return (
    <div className="stack">
      <h3>{title}</h3>
      {rows.map((row, index) => (
        // Rows have no identity but their position.
        // oxlint-disable-next-line react/no-array-index-key
        <div key={index} className="row">
          {children(row, (by) => onChange(rows.map((one, at) => (at === index ? { ...one, ...by } : one))))}
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={labels.remove}
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
        {labels.add}
      </Button>
    </div>
  );
}
