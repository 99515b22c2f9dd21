import { Button } from '@mantine/core';
import { useEffect, useRef } from 'react';
import { useSearchParams } from 'wouter';
import { useMay } from '../../current-user.ts';
import { Confirm } from '../../components/confirm.tsx';
import { Empty } from '../../components/empty.tsx';
import { plural } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { Page } from '../../components/page.tsx';
import { ConnectorStep } from './connector-step.tsx';
import { useDraft } from './draft.ts';
import { ReviewStep } from './review-step.tsx';
import { ScheduleStep } from './schedule-step.tsx';
import { type StepName, Steps } from './steps.tsx';
import { StreamsStep } from './streams-step.tsx';
import { useChoices } from './use-choices.ts';

const ORDER: StepName[] = ['source', 'streams', 'destination', 'schedule', 'review'];

/** A new connection, step by step. The step is in the address; what was decided stays, whichever step one goes to. */
export default function WizardPage() {
  if (useMay('connections.create')) return <Wizard />;
  return (
    <Page title="New connection" back={{ href: '/console/connections', label: 'Connections' }}>
      <Empty icon="role" title="You may not make connections">
        <p>Your roles do not have the permission connections.create. An administrator can give it to you.</p>
      </Empty>
    </Page>
  );
}

function Wizard() {
  const draft = useDraft();
  const choices = useChoices(draft.draft);
  const [search, setSearch] = useSearchParams();
  const asked = ORDER.find((step) => step === search.get('step')) ?? 'source';
  const missing = missingOf(choices);
  const blocked = ORDER.find((step) => missing[step] !== null) ?? 'review';
  // A link or a reload leads no further than to the first step that is still open; while things load nobody is sent back.
  const current = choices.isLoading ? asked : ORDER[Math.min(ORDER.indexOf(asked), ORDER.indexOf(blocked))]!;
  const at = ORDER.indexOf(current);
  const go = (step: StepName) => setSearch({ step });
  const panel = useRef<HTMLDivElement>(null);
  const former = useRef(current);
  useEffect(() => {
    if (former.current === current) return;
    former.current = current;
    panel.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [current]);
  const panels: Record<StepName, React.ReactNode> = {
    source: (
      <ConnectorStep type="source" chosen_id={draft.draft.source_id} choose={(source_id) => draft.set({ source_id })} />
    ),
    streams: <StreamsStep draft={draft} choices={choices} back={() => go('source')} />,
    destination: (
      <ConnectorStep
        type="destination"
        chosen_id={draft.draft.destination_id}
        choose={(destination_id) => draft.set({ destination_id })}
      />
    ),
    schedule: <ScheduleStep draft={draft} />,
    review: <ReviewStep draft={draft} choices={choices} go={go} />,
  };
  const next = ORDER[at + 1];
  return (
    <Page
      title="New connection"
      back={{ href: '/console/connections', label: 'Connections' }}
      lead="From a source, by streams and fields, into a destination."
      actions={<StartOver onConfirm={() => (draft.clear(), go('source'))} />}
    >
      <Steps current={current} open={ORDER.indexOf(blocked)} told={toldOf(choices)} go={go} />
      {ORDER.map((step) => (
        // Each step stays in the page, so that nothing that was typed in it is lost.
        <div
          key={step}
          className="wizard-panel"
          hidden={step !== current}
          tabIndex={-1}
          ref={step === current ? panel : null}
        >
          {(step === current || ['source', 'destination'].includes(step)) && panels[step]}
        </div>
      ))}
      {next && (
        <div className="form-foot sticky-foot">
          <span className="dimmed grow" role="status">
            {missing[current]}
          </span>
          {at > 0 && (
            <Button variant="default" onClick={() => go(ORDER[at - 1]!)}>
              Back
            </Button>
          )}
          <Button
            disabled={missing[current] !== null}
            rightSection={<Icon name="arrow" size={16} />}
            onClick={() => go(next)}
          >
            Next
          </Button>
        </div>
      )}
    </Page>
  );
}

type Choices = ReturnType<typeof useChoices>;

/** What keeps a step from being left; null: nothing. */
function missingOf({ source, destination, selected, problems }: Choices): Record<StepName, string | null> {
  const unready = (side: Choices['source'], noun: string) => {
    if (!side) return `Choose a ${noun}, or make a new one`;
    return side.status === 'active' ? null : `“${side.name}” has to pass its test first`;
  };
  const stuck = problems.length > 0 ? `${plural(problems.length, 'stream')} cannot be loaded yet` : null;
  return {
    source: unready(source, 'source'),
    streams: selected.length === 0 ? 'Choose at least one stream' : stuck,
    destination: unready(destination, 'destination'),
    schedule: null,
    review: null,
  };
}

const toldOf = ({ source, destination, selected, draft }: Choices): Partial<Record<StepName, string>> => ({
  ...(source && { source: source.name }),
  ...(selected.length > 0 && { streams: plural(selected.length, 'stream') }),
  ...(destination && { destination: destination.name }),
  schedule: { manual: 'By hand', interval: 'At an interval', cron: 'By cron' }[draft.schedule.type],
});

const StartOver = ({ onConfirm }: { onConfirm: () => void }) => (
  <Confirm
    title="Start over?"
    action="Start over"
    onConfirm={onConfirm}
    trigger={(open) => (
      <Button variant="subtle" color="gray" onClick={open}>
        Start over
      </Button>
    )}
  >
    What you have chosen for this connection is forgotten. Sources and destinations that you have made stay.
  </Confirm>
);
