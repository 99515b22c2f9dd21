import { Button, Switch, TextInput } from '@mantine/core';
import type { FormEvent } from 'react';
import { useLocation } from 'wouter';
import { trpc } from '../../api.ts';
import { usePermission } from '../../current-user.ts';
import { isApiError } from '../../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { FolderField } from '../connections/folder-field.tsx';
import { formatCompact, pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { InexactValues } from '../../components/inexact-values.tsx';
import { NameField } from '../../components/name-field.tsx';
import { Section } from '../../components/page.tsx';
import { wordsOf } from '../../components/status.tsx';
import { problemOf, refusedField } from '../../refused-field.ts';
import { Findings, useFindings } from './findings.tsx';
import { useSchedulePreview } from '../../schedule/schedule-preview.tsx';
import { useAction } from '../../use-action.ts';
import type { DraftState } from './draft.ts';
import { requestOf, type WizardStream } from './proposal.ts';
import { STEP_LABELS, type StepName } from './steps.tsx';
import type { Selection } from './use-selection.ts';

interface ReviewStepProps {
  draft: DraftState;
  selection: Selection;
  go: (step: StepName) => void;
}

/** A summary, the name and the destination settings, before the connection is created. */
export function ReviewStep({ draft: { draft, set, clear }, selection, go }: ReviewStepProps) {
  const { source, destination } = selection;
  const [, navigate] = useLocation();
  const mayRun = usePermission('connections.run');
  const run_immediately = draft.run_immediately && mayRun;
  const request = streamsRequest(draft, selection);
  const findings = useFindings(request);
  const create = useAction(trpc.connections.create, {
    done: 'Connection created',
    failed: null,
    after: ({ id, active_run_id }) => {
      clear();
      navigate(`/console/connections/${id}${active_run_id === null ? '' : `/runs/${active_run_id}`}`);
    },
  });
  const name = draft.name ?? `${source?.name} to ${destination?.name}`;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!request || name.trim() === '') return;
    create.mutate({
      ...request,
      name: name.trim(),
      schedule: draft.schedule,
      run_immediately,
      inexact_values: draft.inexact_values,
      ...(draft.folder.trim() !== '' && { folder: draft.folder.trim() }),
    });
  };
  const where = stepOf(refusedField(create.error));
  const isTaken = isApiError(create.error) && /duplicate/.test(create.error.code) && where === null;
  return (
    <form className="stack" onSubmit={submit} noValidate>
      <Summary {...{ selection, go }} />
      <Section title="Name and destination">
        <div className="fields">
          <NameField
            value={name}
            problem={isTaken ? create.error?.message : null}
            onChange={(to) => set({ name: to })}
          />
          <FolderField
            value={draft.folder}
            problem={problemOf(create.error, 'folder')}
            onChange={(folder) => set({ folder })}
          />
          <DestinationFields {...{ draft, set }} />
          <Switch
            label="Start the first run immediately"
            checked={run_immediately}
            disabled={!mayRun}
            onChange={(event) => set({ run_immediately: event.currentTarget.checked })}
          />
        </div>
      </Section>
      {!create.error && findings.length > 0 && <Findings findings={findings} edit={() => go('streams')} />}
      {create.error && <Failure title="Connection not created" error={create.error} />}
      <div className="form-foot sticky-foot">
        <span className="grow">
          {where && (
            <Button variant="light" size="xs" onClick={() => go(where)}>
              Go to {STEP_LABELS[where].toLowerCase()}
            </Button>
          )}
        </span>
        <Button variant="default" onClick={() => go('schedule')}>
          Back
        </Button>
        <Button type="submit" loading={create.isPending} leftSection={<Icon name="play" size={16} />}>
          {run_immediately ? 'Create and run' : 'Create connection'}
        </Button>
      </div>
    </form>
  );
}

const DestinationFields = ({ draft, set }: Pick<DraftState, 'draft' | 'set'>) => (
  <>
    <TextInput
      label="Table prefix"
      placeholder="None"
      value={draft.table_prefix}
      onChange={(event) => set({ table_prefix: event.currentTarget.value })}
    />
    <InexactValues value={draft.inexact_values} onChange={(inexact_values) => set({ inexact_values })} />
  </>
);

/** What the draft says about streams and where they are written; null without both sides. */
function streamsRequest(draft: DraftState['draft'], selection: Selection) {
  const { source, destination, destination_schema, selected, edits } = selection;
  if (!source || !destination) return null;
  const table_prefix = draft.table_prefix.trim();
  return {
    source_id: source.id,
    destination_id: destination.id,
    streams: selected.map((row) => requestOf(row, edits)),
    ...(destination_schema !== '' && { destination_schema }),
    ...(table_prefix !== '' && { table_prefix }),
  };
}

/** The step that sets a field of the request; null for this one. */
function stepOf(field: string): StepName | null {
  if (field.startsWith('streams')) return 'streams';
  if (field.startsWith('schedule')) return 'schedule';
  if (field === 'source_id') return 'source';
  return field === 'destination_id' || field === 'destination_schema' ? 'destination' : null;
}

function Summary({ selection, go }: Pick<ReviewStepProps, 'selection' | 'go'>) {
  const { source, destination, destination_schema, selected, draft } = selection;
  const { preview } = useSchedulePreview(draft.schedule);
  const into = destination_schema === '' ? '' : `, schema ${destination_schema}`;
  const lines: [step: StepName, label: string, value: string, more: string][] = [
    ['source', 'Source', source?.name ?? '', source?.connector_display_name ?? ''],
    ['streams', 'Streams', pluralize(selected.length, 'stream'), describeModes(selected)],
    ['destination', 'Destination', destination?.name ?? '', `${destination?.connector_display_name}${into}`],
    ['schedule', 'Schedule', preview?.description ?? '…', ''],
  ];
  return (
    <Section title="Summary">
      <dl className="review">
        {lines.map(([step, label, value, more]) => (
          <div key={step}>
            <dt>{label}</dt>
            <dd>
              <b>{value}</b> {more && <span className="dimmed">{more}</span>}
            </dd>
            <Button
              variant="subtle"
              size="compact-sm"
              aria-label={`Edit ${label.toLowerCase()}`}
              onClick={() => go(step)}
            >
              Edit
            </Button>
          </div>
        ))}
      </dl>
    </Section>
  );
}

/** `3 full refresh, overwrite; 2 incremental, append dedup` */
function describeModes(rows: WizardStream[]): string {
  const counts = new Map<string, number>();
  for (const { stream } of rows) {
    const modes = `${wordsOf(stream.sync_mode)}, ${wordsOf(stream.destination_sync_mode)}`;
    counts.set(modes, (counts.get(modes) ?? 0) + 1);
  }
  return [...counts]
    .map(([modes, count]) => (counts.size === 1 ? modes : `${formatCompact(count)} ${modes}`))
    .join('; ');
}
