import { Checkbox } from '@mantine/core';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useLayoutEffect, useRef, useState } from 'react';
import { plural } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { Status, wordsOf } from '../../components/status.tsx';
import { type DestinationSyncMode, type StreamEdit, StreamEditor } from '../../streams/stream-editor.tsx';
import { type Row, writeModes } from './proposal.ts';

interface StreamRowsProps {
  rows: Row[];
  destination_modes: readonly DestinationSyncMode[];
  isReverse: boolean;
  change: (row: Row, edit: StreamEdit) => void;
}

const ROW_PX = 57;

/** Only the rows in sight are in the page; the one that is open shows its settings. */
export function StreamRows({ rows, destination_modes, isReverse, change }: StreamRowsProps) {
  const list = useRef<HTMLDivElement>(null);
  const [offset, setOffset] = useState(0);
  const [open, setOpen] = useState<string | null>(null);
  // What stands above grows and shrinks: where the list begins is looked up after every change. The same number, which
  // it is the second time, changes nothing.
  // oxlint-disable-next-line react-hooks/exhaustive-deps
  useLayoutEffect(() => {
    const top = Math.round((list.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
    setOffset(top);
  });
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => ROW_PX,
    overscan: 8,
    scrollMargin: offset,
    getItemKey: (index) => rows[index]!.key,
  });
  const items = virtual.getVirtualItems();
  return (
    <div ref={list} className="stream-rows" style={{ height: virtual.getTotalSize() }}>
      <ul style={{ transform: `translateY(${(items[0]?.start ?? offset) - offset}px)` }}>
        {items.map(({ index, key }) => {
          const row = rows[index]!;
          const isOpen = open === row.key;
          return (
            <li
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              aria-setsize={rows.length}
              aria-posinset={index + 1}
            >
              <Line row={row} isOpen={isOpen} toggle={() => setOpen(isOpen ? null : row.key)} change={change} />
              {isOpen && (
                <div className="stream-details">
                  <StreamEditor
                    stream={row.stream}
                    item={row.item}
                    destination_modes={writeModes(row.stream.sync_mode, destination_modes)}
                    isReverse={isReverse}
                    disabled={!row.stream.selected}
                    onChange={(edit) => change(row, edit)}
                  />
                </div>
              )}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

interface LineProps {
  row: Row;
  isOpen: boolean;
  toggle: () => void;
  change: StreamRowsProps['change'];
}

function Line({ row, isOpen, toggle, change }: LineProps) {
  const { key, stream, item, problem } = row;
  return (
    <div className="stream-line">
      <Checkbox
        aria-label={`Load ${key}`}
        checked={stream.selected}
        onChange={(event) => change(row, { selected: event.currentTarget.checked })}
      />
      <button type="button" className="stream-toggle" aria-expanded={isOpen} onClick={toggle}>
        <span className="grow">
          <b>{key}</b>
          <span className="dimmed stream-how">
            {stream.selected ? howOf(row) : plural(item.fields.length, 'field')}
          </span>
        </span>
        {problem && <Status value="warning" label={problem} />}
        {item.change_status === 'added' && <span className="dimmed nowrap">new</span>}
        <Icon name="down" size={16} />
      </button>
    </div>
  );
}

function howOf({ stream, item }: Row): string {
  const left = stream.fields.filter((field) => field.selected === false).length;
  const masked = stream.fields.filter(({ masking }) => masking !== undefined && masking !== 'none').length;
  const renamed = stream.fields.filter(({ destination_name }) => destination_name).length;
  const cursor = stream.sync_mode === 'incremental' && stream.cursor_field?.join('.');
  return [
    `${wordsOf(stream.sync_mode)}, ${wordsOf(stream.destination_sync_mode)}`,
    cursor && `by ${cursor}`,
    `${item.fields.length - left} of ${plural(item.fields.length, 'field')}`,
    masked > 0 && `${masked} masked`,
    renamed > 0 && `${renamed} renamed`,
    stream.filters.length > 0 && plural(stream.filters.length, 'filter'),
    stream.destination_table && `into ${stream.destination_table}`,
  ]
    .filter(Boolean)
    .join(' · ');
}
