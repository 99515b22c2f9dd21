import { Button, SegmentedControl, Select } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type UIEvent, useEffect, useRef, useState } from 'react';
import { useSearchParams } from 'wouter';
import { type RouterOutputs, trpc } from '../../api.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { formatClock, formatDateTime, pluralize } from '../../components/format.ts';
import { Section } from '../../components/page.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { isLive, type RunProgress } from './use-run-progress.ts';

export type RunLogLine = RouterOutputs['runs']['log'][number];

const LEVELS = [
  { value: 'info', label: 'All' },
  { value: 'warning', label: 'Warnings' },
  { value: 'error', label: 'Errors' },
] as const;
type Level = (typeof LEVELS)[number]['value'];

const SHOWN = 100;

/** What the service did in this run, in words. Grows while the run is live; the address can name one line. */
export function RunLog({ run, stream_runs, log_lines }: RunProgress) {
  const [search] = useSearchParams();
  const linked = search.get('line');
  const [level, setLevel] = useState<Level>('info');
  const [stream_run_id, setStream] = useState('');
  const filters = { level, ...(stream_run_id !== '' && { stream_run_id }) };
  const log = useQuery(
    trpc.runs.log.queryOptions(
      { connection_id: run.connection_id, connection_run_id: run.id, ...filters },
      { placeholderData: keepPreviousData },
    ),
  );
  const { refetch } = log;
  useEffect(() => void refetch(), [refetch, log_lines, run.status]);
  return (
    <Section title="Log" lead="What the service did, kept with the run.">
      <div className="row">
        <SegmentedControl aria-label="Level" data={[...LEVELS]} value={level} onChange={setLevel} />
        {stream_runs.length > 1 && (
          <Select
            aria-label="Stream of the log"
            data={[
              { value: '', label: 'All streams' },
              ...stream_runs.map(({ id, stream_name }) => ({ value: id, label: stream_name })),
            ]}
            value={stream_run_id}
            onChange={(value) => setStream(value ?? '')}
          />
        )}
      </div>
      <QueryView query={log}>{(lines) => <Lines {...{ lines, linked, run }} />}</QueryView>
    </Section>
  );
}

function Lines({ lines, linked, run }: { lines: RunLogLine[]; linked: string | null; run: RunProgress['run'] }) {
  const [showsAll, setShowsAll] = useState(linked !== null);
  const follow = useFollowedEnd(lines.length, isLive(run.status) && linked === null);
  const hidden = showsAll ? 0 : Math.max(0, lines.length - SHOWN);
  if (lines.length === 0) return <p className="calm-note">No lines of this level</p>;
  return (
    <>
      {hidden > 0 && (
        <Button variant="subtle" fullWidth onClick={() => setShowsAll(true)}>
          Show {pluralize(hidden, 'earlier line')}
        </Button>
      )}
      <ol className="run-log" {...follow}>
        {lines.slice(hidden).map((line) => (
          <Line key={line.id} line={line} run={run} isLinked={line.id === linked} />
        ))}
      </ol>
    </>
  );
}

/** Keeps the newest line of a run that is watched live in view, until the user scrolls up. */
function useFollowedEnd(lines: number, isWatched: boolean) {
  const ref = useRef<HTMLOListElement>(null);
  const follows = useRef(isWatched);
  useEffect(() => {
    if (follows.current && ref.current) ref.current.scrollTop = ref.current.scrollHeight;
  }, [lines]);
  const onScroll = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }: UIEvent<HTMLOListElement>) => {
    const isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_END;
    follows.current = isAtEnd && (isWatched || follows.current);
  };
  return { ref, onScroll };
}

const NEAR_END = 24;

const TONES = { info: 'calm', warning: 'warn', error: 'bad' } as const;

function Line({ line, run, isLinked }: { line: RunLogLine; run: RunProgress['run']; isLinked: boolean }) {
  const { id, at, level, code, message, stream_name, attempt } = line;
  const address = `${location.pathname}?line=${id}`;
  return (
    <li
      data-tone={TONES[level]}
      aria-current={isLinked || undefined}
      ref={isLinked ? (element) => element?.scrollIntoView({ block: 'center' }) : undefined}
    >
      <a
        href={address}
        title={formatDateTime(at)}
        aria-label={`Link to the line of ${formatClock(at)}`}
        className="number"
      >
        {formatClock(at)}
      </a>
      <span className="run-log-text">
        {level !== 'info' && <b className="log-status">{level === 'error' ? 'Error' : 'Warning'} </b>}
        {stream_name !== null && <b>{stream_name} </b>}
        {message}
        <span className="dimmed">
          {' '}
          <code>{code}</code>
          {attempt !== null && attempt > 1 && ` · attempt ${attempt}`}
        </span>
      </span>
      {level !== 'info' && <CopyButton label="Copy" text={textOf(line, run, address)} />}
    </li>
  );
}

/** What support needs to find the line again. */
const textOf = (
  { at, level, code, message, stream_name, stream_run_id }: RunLogLine,
  run: RunProgress['run'],
  address: string,
) =>
  [
    `${at} ${level} ${stream_name ?? 'run'}: ${message}`,
    `code ${code}`,
    `run ${run.id}`,
    ...(stream_run_id === null ? [] : [`stream run ${stream_run_id}`]),
    new URL(address, location.origin).href,
  ].join('\n');
