import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useLayoutEffect, useRef, useState } from 'react';
import { bytes, duration } from '../../components/format.ts';
import { isTrouble, type LogEntry, statusOf } from './log-entries.ts';
import { LogEntryDetails } from './log-entry-details.tsx';

const ROW_PX = 44;

/** Requests, each with its place on the run's time line; opened, with headers and bodies. */
export function LogTable({ entries }: { entries: LogEntry[] }) {
  const list = useRef<HTMLUListElement>(null);
  const [open, setOpen] = useState<string | null>(null);
  const [offset, setOffset] = useState(0);
  useLayoutEffect(() => {
    setOffset((list.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
  }, [entries.length]);
  const rows = useWindowVirtualizer({
    count: entries.length,
    estimateSize: () => ROW_PX,
    overscan: 10,
    scrollMargin: offset,
    getItemKey: (index) => entries[index]!.id,
  });
  const start = Math.min(...entries.map(({ timestamp }) => Date.parse(timestamp)));
  const end = Math.max(...entries.map(({ timestamp, duration_ms }) => Date.parse(timestamp) + duration_ms));
  const line = { start, span: Math.max(1, end - start) };
  return (
    <div className="log">
      <div className="log-head" aria-hidden="true">
        <span>Request</span>
        <span>Status</span>
        <span>Size</span>
        <span>Time</span>
        <span>Waterfall, {duration(Math.round(line.span))}</span>
      </div>
      <ul ref={list} style={{ height: rows.getTotalSize() }} className="log-list">
        {rows.getVirtualItems().map(({ index, start: top, key }) => {
          const entry = entries[index]!;
          const isOpen = open === entry.id;
          return (
            <li
              key={key}
              ref={rows.measureElement}
              data-index={index}
              style={{ transform: `translateY(${top - offset}px)` }}
            >
              <button
                type="button"
                className="log-row"
                aria-expanded={isOpen}
                onClick={() => setOpen(isOpen ? null : entry.id)}
              >
                <LogRow entry={entry} line={line} />
              </button>
              {isOpen && <LogEntryDetails entry={entry} />}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function LogRow({ entry, line }: { entry: LogEntry; line: { start: number; span: number } }) {
  const { request, response, duration_ms, timestamp, redactions, rate_limited } = entry;
  const left = ((Date.parse(timestamp) - line.start) / line.span) * 100;
  const width = Math.max(0.6, (duration_ms / line.span) * 100);
  return (
    <>
      <span className="log-request">
        <b>{request.method}</b> {request.url}
        {redactions > 0 && <em className="redacted">{redactions} redacted</em>}
      </span>
      <span className="log-status" data-tone={rate_limited ? 'warn' : isTrouble(entry) ? 'bad' : 'good'}>
        {statusOf(entry)}
      </span>
      <span className="number">{bytes(response?.body_bytes ?? request.body_bytes)}</span>
      <span className="number">{duration(Math.round(duration_ms))}</span>
      <span className="waterfall" aria-hidden="true">
        <i
          style={{ left: `${Math.min(99, left)}%`, width: `${Math.min(width, 100 - left)}%` }}
          data-tone={isTrouble(entry) ? 'bad' : 'good'}
        />
      </span>
    </>
  );
}
