import { Alert, Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation, useParams } from 'wouter';
import { isApiError } from '../../../api.ts';
import { trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { formatBytes, formatCount, formatDateTime, formatDuration, pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { StopQuestion } from '../../components/confirm.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { Page, Section } from '../../components/page.tsx';
import { Status, wordsOf } from '../../components/status.tsx';
import { useAction } from '../../use-action.ts';
import NotFoundPage from '../not-found.tsx';
import { Certificates } from './certificates.tsx';
import { NetworkLog } from './network-log.tsx';
import { RunFailure } from './run-failure.tsx';
import { RunLog } from './run-log.tsx';
import { StreamRuns } from './stream-runs.tsx';
import { Timeline } from './timeline.tsx';
import { isLive, type RunProgress, useRunProgress } from './use-run-progress.ts';

const RUN_TYPES: Record<RunProgress['run']['run_type'], string> = {
  plain: 'Sync',
  custom: 'Custom run',
  full_refresh: 'Full refresh',
};

/** One run: progress, figures, errors and network log. */
export default function RunPage() {
  const { connection_id = '', connection_run_id = '' } = useParams();
  const progress = useRunProgress({ connection_id, connection_run_id });
  if (isApiError(progress.error) && progress.error.status === 404) return <NotFoundPage />;
  return <QueryView query={progress}>{(data) => <Run {...data} />}</QueryView>;
}

function Run({ run, stream_runs, log_lines }: RunProgress) {
  const connection = useQuery(trpc.connections.get.queryOptions({ connection_id: run.connection_id }));
  const name = connection.data?.name ?? 'Connection';
  return (
    <Page
      title={`Run #${run.number}`}
      mark={<Status value={run.status} />}
      back={{ href: `/console/connections/${run.connection_id}`, label: name }}
      lead={
        <>
          {RUN_TYPES[run.run_type]} · Started by {run.triggered_by?.name ?? wordsOf(run.trigger_type)}{' '}
          <RelativeTime at={run.created_at} />
          {run.window_start && ` · ${run.window_start} to ${run.window_end ?? 'today'}`}
        </>
      }
      actions={<Actions run={run} />}
    >
      <RunFailure run={run} connection={connection.data} />
      {run.warnings.length > 0 && (
        <Alert color="yellow" icon={<Icon name="alert" />} title={pluralize(run.warnings.length, 'warning')}>
          <ul>
            {run.warnings.map(({ code, message, stream_name }) => (
              <li key={`${code} ${stream_name} ${message}`}>
                {stream_name && <b>{stream_name}: </b>}
                {message}
              </li>
            ))}
          </ul>
        </Alert>
      )}
      <section className="card" aria-label="Figures">
        <Figures run={run} />
      </section>
      <Section title="Streams" lead={`${run.streams_succeeded} of ${run.streams_total} succeeded`}>
        <Timeline streams={stream_runs} />
        <StreamRuns run={run} streams={stream_runs} destination={connection.data?.destination} />
      </Section>
      <RunLog {...{ run, stream_runs, log_lines }} />
      <Certificates run={run} />
      <NetworkLog run={run} streams={stream_runs} />
    </Page>
  );
}

const Figures = ({ run }: Pick<RunProgress, 'run'>) => (
  <dl className="facts number">
    <Fact name="Rows read" value={formatCount(run.rows_read)} />
    <Fact name="Rows loaded" value={formatCount(run.rows_loaded)} />
    <Fact name="Rows rejected" value={formatCount(run.rows_rejected)} />
    <Fact name="Bytes loaded" value={formatBytes(run.bytes_loaded)} />
    <Fact name="Duration" value={formatDuration(run.duration_ms)} />
    <Fact name="Attempt" value={`${run.attempt} of ${run.max_attempts}`} />
    <Fact name="Credits" value={formatCount(run.credits_used)} />
    <Fact name="Finished" value={run.finished_at ? formatDateTime(run.finished_at) : 'Not yet'} />
  </dl>
);

const Fact = ({ name, value }: { name: string; value: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
);

const RETRYABLE = new Set(['failed', 'partially_succeeded', 'stopped']);

function Actions({ run }: Pick<RunProgress, 'run'>) {
  const mayRun = usePermission('connections.run');
  const [, navigate] = useLocation();
  const [isAsking, setAsking] = useState(false);
  const stop = useAction(trpc.runs.stop, { done: 'Stopping the run', failed: 'Run not stopped' });
  const rerun = useAction(trpc.runs.rerun, {
    done: 'Run started',
    failed: 'Run not started',
    after: (id) => navigate(`/console/connections/${run.connection_id}/runs/${id}`),
  });
  if (isLive(run.status)) {
    return (
      <>
        <Button
          color="red"
          variant="light"
          leftSection={<Icon name="stop" size={16} />}
          disabled={!mayRun || run.status === 'stopping'}
          loading={stop.isPending}
          onClick={() => setAsking(true)}
        >
          {run.status === 'stopping' ? 'Stopping' : 'Stop'}
        </Button>
        {isAsking && (
          <StopQuestion
            title={`Stop run #${run.number}?`}
            onConfirm={() => stop.mutate({ connection_run_id: run.id })}
            onClose={() => setAsking(false)}
          />
        )}
      </>
    );
  }
  const unsuccessful = run.streams_total - run.streams_succeeded;
  const isPartial = RETRYABLE.has(run.status) && run.streams_succeeded > 0 && unsuccessful > 0;
  return (
    <>
      <Button
        variant="default"
        leftSection={<Icon name="refresh" size={16} />}
        disabled={!mayRun}
        loading={rerun.isPending}
        onClick={() => rerun.mutate({ connection_run_id: run.id })}
      >
        {isPartial ? `Retry ${pluralize(unsuccessful, 'stream')}` : RETRYABLE.has(run.status) ? 'Retry' : 'Run again'}
      </Button>
      {isPartial && (
        <Button
          variant="default"
          disabled={!mayRun || rerun.isPending}
          onClick={() => rerun.mutate({ connection_run_id: run.id, streams: 'all' })}
        >
          Run all again
        </Button>
      )}
    </>
  );
}
