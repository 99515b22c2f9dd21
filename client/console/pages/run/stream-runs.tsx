import { Progress } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { bytes, compact, count, duration } from '../../components/format.ts';
import { Status, toneOf } from '../../components/status.tsx';
import type { RunProgress } from './use-run-progress.ts';

type StreamRun = RunProgress['stream_runs'][number];

const BAR_COLORS = { good: 'teal', bad: 'red', warn: 'yellow', busy: 'blue', calm: 'gray' };

/** Each stream with how far it is. */
export const StreamRuns = ({ streams }: { streams: StreamRun[] }) => (
  <ul className="stream-runs">
    {streams.map((stream) => (
      <li key={stream.id}>
        <StreamRow stream={stream} />
      </li>
    ))}
  </ul>
);

function StreamRow({ stream }: { stream: StreamRun }) {
  const rate = useRate(stream);
  const { stream_name, namespace, status, progress_percent, rows_loaded, error } = stream;
  const name = namespace ? `${namespace}.${stream_name}` : stream_name;
  const isMoving = status === 'running' || status === 'rate_limited';
  return (
    <>
      <div className="between">
        <span className="stream-name">
          <b>{name}</b>
          <Status value={status} />
        </span>
        <span className="dimmed number">
          {isMoving ? `${count(stream.rows_read)} rows read` : `${count(rows_loaded)} rows`} ·{' '}
          {bytes(stream.bytes_loaded)} · {duration(stream.duration_ms)}
          {isMoving && rate !== null && ` · ${compact(rate)} rows/s`}
        </span>
      </div>
      <Progress
        aria-label={`Progress of ${name}`}
        value={progress_percent ?? (isMoving ? 100 : 0)}
        animated={isMoving}
        striped={isMoving && progress_percent === null}
        color={BAR_COLORS[toneOf(status)]}
        size="sm"
      />
      <div className="stream-facts dimmed">
        {stream.rows_rejected > 0 && <span>{count(stream.rows_rejected)} rejected</span>}
        {stream.cursor_after && (
          <span>
            cursor <code>{stream.cursor_after}</code>
          </span>
        )}
        {stream.attempt > 1 && <span>attempt {stream.attempt}</span>}
        {stream.estimated_rows !== null && isMoving && (
          <span>about {compact(stream.estimated_rows)} rows expected</span>
        )}
        {stream.destination_table && <span>into {stream.destination_table}</span>}
      </div>
      {error && (
        <p className="stream-error">
          {error.message} <code>{error.code}</code>
        </p>
      )}
    </>
  );
}

/** Rows a second, from one word of the service to the next. */
function useRate({ rows_read, updated_at }: StreamRun): number | null {
  const former = useRef({ rows: rows_read, at: Date.parse(updated_at) });
  const [rate, setRate] = useState<number | null>(null);
  useEffect(() => {
    const at = Date.parse(updated_at);
    const { rows, at: before } = former.current;
    if (at <= before) return;
    setRate(Math.max(0, (1000 * (rows_read - rows)) / (at - before)));
    former.current = { rows: rows_read, at };
  }, [rows_read, updated_at]);
  return rate;
}
