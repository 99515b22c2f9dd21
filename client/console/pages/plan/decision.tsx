import { Alert, Button, Checkbox } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { compact, duration, plural } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { Section } from '../../components/page.tsx';
import { useAction } from '../../use-action.ts';
import { ChunkCalendar } from './chunk-calendar.tsx';
import { ChunkTable } from './chunk-table.tsx';
import type { Plan } from './plan.tsx';

interface DecisionProps {
  connection: RouterOutputs['connections']['get'];
  plan: Plan;
  /** The form says something else by now. */
  isStale: boolean;
  again: () => void;
  onLaunched: () => void;
}

/** What the run would do, by days and chunks; what speaks against it; and the button that starts it. */
export function Decision({ connection, plan, isStale, again, onLaunched }: DecisionProps) {
  const runnable = plan.chunks.filter(({ action }) => action === 'run');
  const [left, setLeft] = useState<ReadonlySet<number>>(new Set());
  const [isConfirmed, setConfirmed] = useState(false);
  const launch = useAction(trpc.runs.launchPlan, {
    failed: null,
    done: 'The custom run was launched',
    after: onLaunched,
  });
  const chosen = runnable.filter(({ index }) => !left.has(index));
  const toggle = (index: number) => {
    const after = new Set(left);
    if (!after.delete(index)) after.add(index);
    setLeft(after);
  };
  const isOver = isStale || /^plan_(expired|stale)$/.test(launch.error?.code ?? '');
  const needsWord = plan.requires_confirmation && !isConfirmed;
  const submit = () =>
    launch.mutate({
      connection_id: connection.id,
      plan_id: plan.plan_id,
      plan_hash: plan.plan_hash,
      confirm: plan.requires_confirmation,
      ...(left.size > 0 && { chunk_indexes: chosen.map(({ index }) => index) }),
    });
  const top = useRef<HTMLDivElement>(null);
  // Braces: Chromium answers with a promise, which React would call as a clean-up.
  useEffect(() => {
    top.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return (
    <Section title="What it would do" lead={TOLD[plan.decision]}>
      <div className="stack" ref={top}>
        <Facts plan={plan} chosen={chosen.length} />
        <Notices plan={plan} />
        <ChunkCalendar chunks={plan.chunks} left={left} toggle={toggle} />
        <ChunkTable chunks={plan.chunks} left={left} toggle={toggle} />
        {plan.requires_confirmation && plan.blockers.length === 0 && (
          <Checkbox
            label={
              plan.parameters.clear_destination
                ? 'Yes, empty the tables at the destination first'
                : 'Yes, I know what this loads'
            }
            checked={isConfirmed}
            onChange={(event) => setConfirmed(event.currentTarget.checked)}
          />
        )}
        {launch.error && <Failure title="It was not launched" error={launch.error} />}
        <div className="form-foot sticky-foot">
          <span className="dimmed grow" role="status">
            {isStale ? 'The form was changed since' : plural(chosen.length, 'chunk') + ' chosen'}
          </span>
          {isOver ? (
            <Button variant="default" onClick={again}>
              Plan anew
            </Button>
          ) : (
            <Button
              loading={launch.isPending}
              disabled={chosen.length === 0 || plan.blockers.length > 0 || needsWord}
              leftSection={<Icon name="play" size={16} />}
              onClick={submit}
            >
              Launch {plural(chosen.length, 'chunk')}
            </Button>
          )}
        </div>
      </div>
    </Section>
  );
}

const TOLD: Record<Plan['decision'], string> = {
  single_run: 'One run.',
  split_runs: 'A run for each chunk of days.',
  nothing_to_do: 'Nothing: every chunk is skipped.',
  blocked: 'It cannot be launched like that.',
};

const Facts = ({ plan, chosen }: { plan: Plan; chosen: number }) => (
  <dl className="facts">
    <div>
      <dt>Chunks</dt>
      <dd>
        {chosen} of {plan.total_chunks}
        {plan.skipped_chunks > 0 && `, ${plan.skipped_chunks} skipped`}
      </dd>
    </div>
    <div>
      <dt>Rows, about</dt>
      <dd>{plan.estimated_rows === null ? 'not known yet' : compact(plan.estimated_rows)}</dd>
    </div>
    <div>
      <dt>Credits, about</dt>
      <dd>
        {plan.estimated_credits === null ? 'not known yet' : compact(plan.estimated_credits)}
        {plan.credits_remaining !== null && ` of ${compact(plan.credits_remaining)}`}
      </dd>
    </div>
    <div>
      <dt>Time, about</dt>
      <dd>{plan.estimated_duration_ms === null ? 'not known yet' : duration(plan.estimated_duration_ms)}</dd>
    </div>
  </dl>
);

function Notices({ plan }: { plan: Plan }) {
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
              <summary>{plural(others.length, 'stream')} more</summary>
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
          <summary>{plural(undated.length, 'stream')} without a window of days</summary>
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
