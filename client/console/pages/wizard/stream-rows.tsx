import { Checkbox } from '@mantine/core';
import { useState } from 'react';
import { pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { labelOf, Status, wordsOf } from '../../components/status.tsx';
import { VirtualList } from '../../streams/virtual-list.tsx';
import { StreamEditor, type StreamEditorProps } from '../../streams/stream-editor.tsx';
import { type WizardStream, writeModes } from './proposal.ts';
import type { DestinationSyncMode, StreamEdit } from '../../streams/stream.ts';

interface StreamRowsProps {
  rows: WizardStream[];
  destination_modes: readonly DestinationSyncMode[];
  isReverse: boolean;
  preview: StreamEditorProps['preview'];
  change: (row: WizardStream, edit: StreamEdit) => void;
}

const ROW_PX = 74;

/** The streams of the source. The open row shows its settings. */
export function StreamRows({ rows, destination_modes, isReverse, preview, change }: StreamRowsProps) {
  const [open, setOpen] = useState<string | null>(null);
  return (
    <VirtualList count={rows.length} row_px={ROW_PX} keyOf={(index) => rows[index]!.key}>
      {(index) => {
        const row = rows[index]!;
        const isOpen = open === row.key;
        return (
          <>
            <Line row={row} isOpen={isOpen} toggle={() => setOpen(isOpen ? null : row.key)} change={change} />
            {isOpen && (
              <div className="stream-details">
                <StreamEditor
                  stream={row.stream}
                  item={row.item}
                  destination_modes={writeModes(row.stream.sync_mode, destination_modes)}
                  isReverse={isReverse}
                  disabled={!row.stream.selected}
                  preview={preview}
                  onChange={(edit) => change(row, edit)}
                />
              </div>
            )}
          </>
        );
      }}
    </VirtualList>
  );
}

interface LineProps {
  row: WizardStream;
  isOpen: boolean;
  toggle: () => void;
  change: StreamRowsProps['change'];
}

function Line({ row, isOpen, toggle, change }: LineProps) {
  const { key, stream, item, reason, problem } = row;
  return (
    <div className="stream-line">
      <Checkbox
        aria-label={`Select ${key}`}
        checked={stream.selected}
        onChange={(event) => change(row, { selected: event.currentTarget.checked })}
      />
      <button type="button" className="stream-toggle" aria-expanded={isOpen} onClick={toggle}>
        <span className="grow">
          <b>{key}</b>
          <span className="dimmed stream-how">
            {stream.selected ? describeStream(row) : pluralize(item.fields.length, 'field')}
          </span>
          {stream.selected && reason && <span className="dimmed stream-how">{reason}</span>}
        </span>
        {problem && <Status value="warning" label={problem} />}
        {item.change_status === 'added' && <span className="dimmed nowrap">New</span>}
        <Icon name="down" size={16} />
      </button>
    </div>
  );
}

function describeStream({ stream, item }: WizardStream): string {
  const left = stream.fields.filter((field) => field.selected === false).length;
  const masked = stream.fields.filter(({ masking }) => masking !== undefined && masking !== 'none').length;
  const renamed = stream.fields.filter(({ destination_name }) => destination_name).length;
  const cursor = stream.sync_mode === 'incremental' && stream.cursor_field?.join('.');
  return [
    `${labelOf(stream.sync_mode)}, ${wordsOf(stream.destination_sync_mode)}`,
    cursor && `cursor ${cursor}`,
    `${item.fields.length - left} of ${pluralize(item.fields.length, 'field')}`,
    masked > 0 && `${masked} masked`,
    renamed > 0 && `${renamed} renamed`,
    stream.filters.length > 0 && pluralize(stream.filters.length, 'filter'),
    stream.destination_table && `into ${stream.destination_table}`,
  ]
    .filter(Boolean)
    .join(' · ');
}
