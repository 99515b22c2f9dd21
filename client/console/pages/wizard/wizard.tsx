import { Button } from '@mantine/core';
import { useEffect, useRef } from 'react';
import { useSearchParams } from 'wouter';
import { usePermission } from '../../current-user.ts';
import { Confirm } from '../../components/confirm.tsx';
import { Empty } from '../../components/empty.tsx';
import { pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { Page } from '../../components/page.tsx';
import { DestinationSchema } from '../account-connectors/destination-schema.tsx';
import { ConnectorStep } from './connector-step.tsx';
import { type DraftState, useDraft } from './draft.ts';
import { ReviewStep } from './review-step.tsx';
import { ScheduleStep } from './schedule-step.tsx';
import { type StepName, Steps } from './steps.tsx';
import { StreamsStep } from './streams-step.tsx';
import { type Template, Templates } from './templates.tsx';
import { useSelection } from './use-selection.ts';

const ORDER: StepName[] = ['source', 'streams', 'destination', 'schedule', 'review'];

/** Creates a connection, step by step. The step is in the address, and the draft is kept across steps. */
export default function WizardPage() {
  if (usePermission('connections.create')) return <Wizard />;
  return (
    <Page title="New connection" back={{ href: '/console/connections', label: 'Connections' }}>
      <Empty icon="role" title="You do not have permission to create connections">
        <p>Creating connections requires the connections.create permission. Ask an administrator for access.</p>
      </Empty>
    </Page>
  );
}

function Wizard() {
  const draft = useDraft();
  const selection = useSelection(draft.draft);
  const [search, setSearch] = useSearchParams();
  const requested = ORDER.find((step) => step === search.get('step')) ?? 'source';
  const missing = missingOf(selection);
  const blocked = ORDER.find((step) => missing[step] !== null) ?? 'review';
  // A link or reload opens no step after the first incomplete one. While data loads, the step is left alone.
  const current = selection.isLoading ? requested : ORDER[Math.min(ORDER.indexOf(requested), ORDER.indexOf(blocked))]!;
  const at = ORDER.indexOf(current);
  const go = (step: StepName) => setSearch({ step });
  const panel = useFocusedPanel(current);
  const panels: Record<StepName, React.ReactNode> = {
    source: <SourceStep draft={draft} template={selection.template} />,
    streams: <StreamsStep draft={draft} selection={selection} back={() => go('source')} />,
    destination: (
      <ConnectorStep
        key={draft.draft.template}
        type="destination"
        selected_id={draft.draft.destination_id}
        select={(destination_id) => draft.set({ destination_id })}
        settings={({ id }) => (
          <DestinationSchema
            destination_id={id}
            value={draft.draft.destination_schema}
            onChange={(destination_schema) => draft.set({ destination_schema })}
          />
        )}
        schema={draft.draft.destination_schema}
        template={selection.template?.destination}
      />
    ),
    schedule: <ScheduleStep draft={draft} />,
    review: <ReviewStep draft={draft} selection={selection} go={go} />,
  };
  const next = ORDER[at + 1];
  return (
    <Page
      title="New connection"
      back={{ href: '/console/connections', label: 'Connections' }}
      lead="Select a source, its streams, a destination and a schedule"
      actions={<StartOver onConfirm={() => (draft.clear(), go('source'))} />}
    >
      <Steps current={current} lastOpen={ORDER.indexOf(blocked)} summaries={summariesOf(selection)} go={go} />
      {ORDER.map((step) => (
        // Connector steps stay mounted, so that their unsaved input is kept.
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

const SourceStep = ({ draft, template }: { draft: DraftState; template: Template | null }) => (
  <div className="stack">
    <Templates draft={draft} />
    <ConnectorStep
      key={draft.draft.template}
      type="source"
      selected_id={draft.draft.source_id}
      select={(source_id) => draft.set({ source_id })}
      template={template?.source}
    />
  </div>
);

/** The panel of a step that was opened gets the focus, at the top of the page. */
function useFocusedPanel(current: StepName) {
  const panel = useRef<HTMLDivElement>(null);
  const previous = useRef(current);
  useEffect(() => {
    if (previous.current === current) return;
    previous.current = current;
    panel.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [current]);
  return panel;
}

type Selection = ReturnType<typeof useSelection>;

const WAITING = 'Waiting for the schema of the source';

/** What a step still needs before the next one; null for nothing. */
function missingOf({ source, destination, catalog, selected, problems }: Selection): Record<StepName, string | null> {
  const incomplete = (side: Selection['source'], noun: string) => {
    if (!side) return `Select a ${noun} or create a new one`;
    return side.status === 'active' ? null : `“${side.name}” must pass its test first`;
  };
  const stuck =
    problems.length > 0
      ? `${pluralize(problems.length, 'stream')} ${problems.length === 1 ? 'needs' : 'need'} attention`
      : null;
  return {
    source: incomplete(source, 'source'),
    streams: selected.length > 0 ? stuck : catalog.data ? 'Select at least one stream' : WAITING,
    destination: incomplete(destination, 'destination'),
    schedule: null,
    review: null,
  };
}

const summariesOf = ({ source, destination, selected, draft }: Selection): Partial<Record<StepName, string>> => ({
  ...(source && { source: source.name }),
  ...(selected.length > 0 && { streams: pluralize(selected.length, 'stream') }),
  ...(destination && { destination: destination.name }),
  schedule: { manual: 'Manual', interval: 'Interval', cron: 'Cron', continuous: 'Continuous' }[draft.schedule.type],
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
    This discards your settings for this connection. Sources and destinations that you created are kept.
  </Confirm>
);
