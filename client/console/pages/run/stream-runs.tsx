import { Progress } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { trpc } from '../../api.ts';
import { formatBytes, formatCompact, formatCount, formatDuration, pluralize } from '../../components/format.ts';
import { Status, toneOf } from '../../components/status.tsx';
import { type StreamTrend, Trend } from './trend.tsx';
import { RejectedRows } from './rejected-rows.tsx';
import { RowsAtDestination } from './rows-at-destination.tsx';
import type { RunProgress } from './use-run-progress.ts';

type StreamRun = RunProgress['stream_runs'][number];

const BAR_COLORS = { good: 'teal', bad: 'red', warn: 'yellow', busy: 'blue', calm: 'gray' };

interface StreamRunsProps {
  run: RunProgress['run'];
  streams: StreamRun[];
  /** Of the destination; undefined until it is known. */
  destination: { connector_name: string } | undefined;
}

/** The streams of a run, with their progress. */
export function StreamRuns({ run, streams, destination }: StreamRunsProps) {
  const trends = useQuery(
    trpc.runs.trends.queryOptions({ connection_id: run.connection_id, connection_run_id: run.id }),
  );
  const connectors = useQuery(trpc.connectors.list.queryOptions(undefined, { staleTime: Infinity }));
  const isReadable = (connectors.data ?? []).some(
    ({ connector_type, name, capabilities }) =>
      connector_type === 'destination' && name === destination?.connector_name && capabilities.table_preview,
  );
  return (
    <ul className="stream-runs">
      {streams.map((stream) => (
        <li key={stream.id}>
          <StreamRow
            stream={stream}
            isReadable={isReadable}
            trend={trends.data?.find(({ stream_run_id }) => stream_run_id === stream.id)}
          />
        </li>
      ))}
    </ul>
  );
}

interface StreamRowProps {
  stream: StreamRun;
  trend: StreamTrend | undefined;
  /** The rows at the destination can be shown. */
  isReadable: boolean;
}

function StreamRow({ stream, trend, isReadable }: StreamRowProps) {
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
          {isMoving ? `${pluralize(stream.rows_read, 'row')} read` : pluralize(rows_loaded, 'row')} ·{' '}
          {formatBytes(stream.bytes_loaded)} · {formatDuration(stream.duration_ms)}
          {isMoving && rate !== null && ` · ${formatCompact(rate)} rows/s`}
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
        {stream.rows_rejected > 0 && <span>{formatCount(stream.rows_rejected)} rejected</span>}
        {stream.cursor_after && (
          <span>
            Cursor <code>{stream.cursor_after}</code>
          </span>
        )}
        {stream.attempt > 1 && <span>Attempt {stream.attempt}</span>}
        {stream.estimated_rows !== null && isMoving && (
          <span>About {pluralize(stream.estimated_rows, 'row', formatCompact)} expected</span>
        )}
        {stream.destination_table && <span>Into {stream.destination_table}</span>}
        <Trend stream={stream} trend={trend} />
      </div>
      {stream.rows_rejected > 0 && stream.finished_at !== null && <RejectedRows stream={stream} />}
      {isReadable && stream.rows_loaded > 0 && !isMoving && <RowsAtDestination stream={stream} rows="loaded" />}
      {error && (
        <p className="stream-error">
          {error.message} <code>{error.code}</code>
        </p>
      )}
    </>
  );
}

/** Rows per second between the last two updates. */
function useRate({ rows_read, updated_at }: StreamRun): number | null {
  const previous = useRef({ rows: rows_read, at: Date.parse(updated_at) });
  const [rate, setRate] = useState<number | null>(null);
  useEffect(() => {
    const at = Date.parse(updated_at);
    const { rows, at: before } = previous.current;
    if (at <= before) return;
    setRate(Math.max(0, (1000 * (rows_read - rows)) / (at - before)));
    previous.current = { rows: rows_read, at };
  }, [rows_read, updated_at]);
  return rate;
}
