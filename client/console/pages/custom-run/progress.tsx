import { Button, Progress } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { type RouterOutputs, trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { formatCompact, formatDuration, pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Section } from '../../components/page.tsx';
import { Status, toneOf } from '../../components/status.tsx';
import { StopQuestion } from '../../components/confirm.tsx';
import { useAction } from '../../use-action.ts';
import { ChunkCalendar, formatWindow } from './chunk-calendar.tsx';

type PlanProgress = RouterOutputs['runs']['ofPlan'];
type Run = PlanProgress['runs'][number];

const LIVE = new Set(['queued', 'running', 'retrying', 'stopping']);
const FAILED = new Set(['failed', 'partially_succeeded', 'stopped']);
const POLL_MS = 1_000;

interface ProgressProps {
  plan_id: string;
  connection_id: string;
  startAnother: () => void;
}

/** Progress of a custom run by chunk. Failed chunks can be retried. */
export function CustomRunProgress({ plan_id, startAnother }: ProgressProps) {
  const progress = useQuery(
    trpc.runs.ofPlan.queryOptions(
      { plan_id },
      { refetchInterval: ({ state }) => (state.data?.runs.some(({ status }) => LIVE.has(status)) ? POLL_MS : 10_000) },
    ),
  );
  return <QueryView query={progress}>{(data) => <Chunks progress={data} startAnother={startAnother} />}</QueryView>;
}

/** The newest run of each chunk, because retries supersede earlier ones. */
function newestOf(runs: Run[]): Run[] {
  const newest = new Map<number, Run>();
  for (const run of runs.toSorted((a, b) => a.number - b.number)) newest.set(run.chunk_index ?? 0, run);
  return [...newest.values()].toSorted((a, b) => (a.chunk_index ?? 0) - (b.chunk_index ?? 0));
}

function Chunks({ progress: { plan, runs: all }, startAnother }: { progress: PlanProgress; startAnother: () => void }) {
  const mayRun = usePermission('connections.run');
  const runs = newestOf(all);
  const [isAsking, setAsking] = useState(false);
  const live = runs.filter(({ status }) => LIVE.has(status));
  const failed = runs.filter(({ status }) => FAILED.has(status));
  const ended = runs.length - live.length;
  const byChunk = new Map(runs.map((run) => [run.chunk_index ?? 0, run]));
  const rerun = useAction(trpc.runs.rerun, { failed: 'Chunk not retried', refresh: [trpc.runs.ofPlan] });
  const stop = useAction(trpc.runs.stop, { failed: 'Run not stopped', refresh: [trpc.runs.ofPlan] });
  const unselected = new Set(plan.chunks.filter(({ index }) => !byChunk.has(index)).map(({ index }) => index));
  return (
    <Section
      title={
        live.length > 0
          ? `${ended} of ${pluralize(runs.length, 'chunk')} finished`
          : summarize(runs.length, failed.length)
      }
      lead={plan.parameters.reason ?? undefined}
      actions={
        <>
          {live.length > 0 && (
            <Button
              variant="default"
              disabled={!mayRun}
              leftSection={<Icon name="stop" size={16} />}
              onClick={() => setAsking(true)}
            >
              Stop all
            </Button>
          )}
          {isAsking && (
            <StopQuestion
              title={`Stop ${pluralize(live.length, 'run')}?`}
              action="Stop all"
              onConfirm={() => live.forEach(({ id }) => stop.mutate({ connection_run_id: id }))}
              onClose={() => setAsking(false)}
            />
          )}
          {failed.length > 0 && (
            <Button
              disabled={!mayRun}
              loading={rerun.isPending}
              leftSection={<Icon name="refresh" size={16} />}
              onClick={() => failed.forEach(({ id }) => rerun.mutate({ connection_run_id: id }))}
            >
              Retry {pluralize(failed.length, 'chunk')}
            </Button>
          )}
          <Button variant="default" onClick={startAnother}>
            New custom run
          </Button>
        </>
      }
    >
      <div className="stack">
        <Progress
          value={runs.length === 0 ? 0 : (100 * ended) / runs.length}
          color={failed.length > 0 ? 'red' : 'teal'}
          aria-label={`${ended} of ${runs.length} chunks finished`}
        />
        <ChunkCalendar
          chunks={plan.chunks}
          excluded={unselected}
          toneOf={(index) => (byChunk.has(index) ? toneOf(byChunk.get(index)!.status) : undefined)}
        />
        <ChunkRuns runs={runs} />
      </div>
    </Section>
  );
}

const ChunkRuns = ({ runs }: { runs: Run[] }) => (
  // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
  <div className="table-frame" tabIndex={0} role="region" aria-label="Chunks">
    <table className="table compact">
      <thead>
        <tr>
          <th>Chunk</th>
          <th>Dates</th>
          <th>Status</th>
          <th className="end">Rows</th>
          <th className="end">Duration</th>
          <th>Run</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <ChunkRow key={run.id} run={run} />
        ))}
      </tbody>
    </table>
  </div>
);

const summarize = (chunks: number, failed: number) =>
  failed === 0 ? `${pluralize(chunks, 'chunk')} loaded` : `${failed} of ${pluralize(chunks, 'chunk')} not loaded`;

const ChunkRow = ({ run }: { run: Run }) => (
  <tr>
    <td className="number">{(run.chunk_index ?? 0) + 1}</td>
    <td className="nowrap">{formatWindow({ start_date: run.window_start, end_date: run.window_end })}</td>
    <td>
      <Status value={run.status} />
      {run.error && <span className="stream-error"> {run.error.message}</span>}
    </td>
    <td className="end number">{formatCompact(run.rows_loaded)}</td>
    <td className="end number">{formatDuration(run.duration_ms)}</td>
    <td>
      <Link href={`/console/connections/${run.connection_id}/runs/${run.id}`}>#{run.number}</Link>
    </td>
  </tr>
);
