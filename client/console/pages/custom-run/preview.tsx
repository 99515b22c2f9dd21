import { Alert, Button, Checkbox } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { formatCompact, formatDuration, pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { Section } from '../../components/page.tsx';
import { useAction } from '../../use-action.ts';
import { ChunkCalendar } from './chunk-calendar.tsx';
import { ChunkTable } from './chunk-table.tsx';
import type { CustomRunPlan } from '../../answers.ts';

interface PreviewProps {
  connection: RouterOutputs['connections']['get'];
  plan: CustomRunPlan;
  /** The form has changed since. */
  isStale: boolean;
  refresh: () => void;
  onStarted: () => void;
}

/** What the run would do, by date and chunk, with blockers and warnings, and the button that starts it. */
export function Preview({ connection, plan, isStale, refresh, onStarted }: PreviewProps) {
  const runnable = plan.chunks.filter(({ action }) => action === 'run');
  const [excluded, setExcluded] = useState<ReadonlySet<number>>(new Set());
  const [isConfirmed, setConfirmed] = useState(false);
  const start = useAction(trpc.runs.launchPlan, {
    failed: null,
    done: 'Custom run started',
    after: onStarted,
  });
  const selected = runnable.filter(({ index }) => !excluded.has(index));
  const toggle = (index: number) => {
    const after = new Set(excluded);
    if (!after.delete(index)) after.add(index);
    setExcluded(after);
  };
  const isOutdated = isStale || /^plan_(expired|stale)$/.test(start.error?.code ?? '');
  const needsConfirmation = plan.requires_confirmation && !isConfirmed;
  const submit = () =>
    start.mutate({
      connection_id: connection.id,
      plan_id: plan.plan_id,
      plan_hash: plan.plan_hash,
      confirm: plan.requires_confirmation,
      ...(excluded.size > 0 && { chunk_indexes: selected.map(({ index }) => index) }),
    });
  const top = useRef<HTMLDivElement>(null);
  // In Chromium, scrollIntoView returns a promise, which React would take for a cleanup function.
  useEffect(() => {
    top.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return (
    <Section title="Preview" lead={DECISIONS[plan.decision]}>
      <div className="stack" ref={top}>
        <Facts plan={plan} selected={selected.length} />
        <PlanNotices plan={plan} />
        <ChunkCalendar chunks={plan.chunks} excluded={excluded} toggle={toggle} />
        <ChunkTable chunks={plan.chunks} excluded={excluded} toggle={toggle} />
        {plan.requires_confirmation && plan.blockers.length === 0 && (
          <Checkbox
            label={
              plan.parameters.clear_destination
                ? 'Delete all rows of the destination tables first'
                : 'I have reviewed what this run loads'
            }
            checked={isConfirmed}
            onChange={(event) => setConfirmed(event.currentTarget.checked)}
          />
        )}
        {start.error && <Failure title="Run not started" error={start.error} />}
        <div className="form-foot sticky-foot">
          <span className="dimmed grow" role="status">
            {isStale
              ? 'The settings have changed since this preview'
              : `${pluralize(selected.length, 'chunk')} selected`}
          </span>
          {isOutdated ? (
            <Button variant="default" onClick={refresh}>
              Refresh preview
            </Button>
          ) : (
            <Button
              loading={start.isPending}
              disabled={selected.length === 0 || plan.blockers.length > 0 || needsConfirmation}
              leftSection={<Icon name="play" size={16} />}
              onClick={submit}
            >
              Run {pluralize(selected.length, 'chunk')}
            </Button>
          )}
        </div>
      </div>
    </Section>
  );
}

const DECISIONS: Record<CustomRunPlan['decision'], string> = {
  single_run: 'Starts a single run',
  split_runs: 'Starts one run per chunk',
  nothing_to_do: 'Nothing to run: every chunk is skipped',
  blocked: 'This run is blocked',
};

const Facts = ({ plan, selected }: { plan: CustomRunPlan; selected: number }) => (
  <dl className="facts">
    <div>
      <dt>Chunks</dt>
      <dd>
        {selected} of {plan.total_chunks}
        {plan.skipped_chunks > 0 && `, ${plan.skipped_chunks} skipped`}
      </dd>
    </div>
    <div>
      <dt>Estimated rows</dt>
      <dd>{plan.estimated_rows === null ? 'Unknown' : formatCompact(plan.estimated_rows)}</dd>
    </div>
    <div>
      <dt>Estimated credits</dt>
      <dd>
        {plan.estimated_credits === null ? 'Unknown' : formatCompact(plan.estimated_credits)}
        {plan.credits_remaining !== null && ` of ${formatCompact(plan.credits_remaining)}`}
      </dd>
    </div>
    <div>
      <dt>Estimated time</dt>
      <dd>{plan.estimated_duration_ms === null ? 'Unknown' : formatDuration(plan.estimated_duration_ms)}</dd>
    </div>
  </dl>
);

function PlanNotices({ plan }: { plan: CustomRunPlan }) {
  const undated = plan.streams.filter(({ supports_date_window }) => !supports_date_window);
  return (
    <>
      {plan.blockers.map(({ code, message, stream_name }) => (
        <Alert key={code + stream_name} color="red" icon={<Icon name="alert" />} role="alert">
          {message} <code>{code}</code>
        </Alert>
      ))}
      {[...Map.groupBy(plan.warnings, ({ code }) => code)].map(([code, [first, ...others]]) => (
        <Alert key={code} color="yellow" icon={<Icon name="alert" />}>
          {first!.message}
          {others.length > 0 && (
            <details className="fold">
              <summary>{pluralize(others.length, 'more stream')}</summary>
              <ul>
                {others.map(({ message, stream_name }) => (
                  <li key={stream_name}>{message}</li>
                ))}
              </ul>
            </details>
          )}
        </Alert>
      ))}
      {undated.length > 0 && (
        <details className="fold">
          <summary>{pluralize(undated.length, 'stream')} without date filtering</summary>
          <ul className="chips">
            {undated.map(({ stream_id, stream_name, reason }) => (
              <li key={stream_id} title={reason ?? undefined}>
                <code>{stream_name}</code>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}
