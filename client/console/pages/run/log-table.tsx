import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useLayoutEffect, useRef, useState } from 'react';
import { formatBytes, formatDuration } from '../../components/format.ts';
import { isError, type LogEntry, statusOf } from './log-entries.ts';
import { LogEntryDetails } from './log-entry-details.tsx';

const ROW_PX = 44;

/** Requests on a shared time line, each expandable to its headers and bodies. */
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
  const timeline = { start, span: Math.max(1, end - start) };
  return (
    <div className="log">
      <div className="log-head" aria-hidden="true">
        <span>Request</span>
        <span>Status</span>
        <span>Size</span>
        <span>Duration</span>
        <span>Waterfall, {formatDuration(Math.round(timeline.span))}</span>
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
                <LogRow entry={entry} timeline={timeline} />
              </button>
              {isOpen && <LogEntryDetails entry={entry} />}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function LogRow({ entry, timeline }: { entry: LogEntry; timeline: { start: number; span: number } }) {
  const { request, response, duration_ms, timestamp, redactions, rate_limited } = entry;
  const left = ((Date.parse(timestamp) - timeline.start) / timeline.span) * 100;
  const width = Math.max(0.6, (duration_ms / timeline.span) * 100);
  return (
    <>
      <span className="log-request">
        <b>{request.method}</b> {request.url}
        {redactions > 0 && <em className="redacted">{redactions} redacted</em>}
      </span>
      <span className="log-status" data-tone={rate_limited ? 'warn' : isError(entry) ? 'bad' : 'good'}>
        {statusOf(entry)}
      </span>
      <span className="number">{formatBytes(response?.body_bytes ?? request.body_bytes)}</span>
      <span className="number">{formatDuration(Math.round(duration_ms))}</span>
      <span className="waterfall" aria-hidden="true">
        <i
          style={{ left: `${Math.min(99, left)}%`, width: `${Math.min(width, 100 - left)}%` }}
          data-tone={isError(entry) ? 'bad' : 'good'}
        />
      </span>
    </>
  );
}
