import { MultiSelect, NumberInput, SegmentedControl, Select, Switch, TagsInput, TextInput } from '@mantine/core';
import { NameField } from '../../components/name-field.tsx';
import { Section } from '../../components/page.tsx';
import type { Language } from './trigger.tsx';
import type { TriggerDraft } from './trigger-draft.ts';

interface FieldsProps {
  draft: TriggerDraft;
  set: (change: Partial<TriggerDraft>) => void;
  /** The field that the service refused, and its words. */
  refused: string;
  message: string;
  /** Whether the form was sent once: from then on all that is missing is shown. */
  isChecked: boolean;
}

const SEVERITIES = ['critical', 'high', 'warning', 'info', 'low'];

export const GeneralFields = ({ draft, set, isChecked }: FieldsProps) => (
  <Section title="General">
    <div className="fields">
      <NameField value={draft.name} isChecked={isChecked} onChange={(name) => set({ name })} />
      <Select
        label="Severity"
        data={SEVERITIES}
        value={draft.severity}
        onChange={(severity) => set({ severity: severity as TriggerDraft['severity'] })}
      />
      <TextInput
        label="Description"
        value={draft.description}
        onChange={(event) => set({ description: event.currentTarget.value })}
      />
    </div>
  </Section>
);

const HOUR = 60;
const SECONDS = 60;

export function FiringFields({ draft, set, refused, message, language }: FieldsProps & { language: Language }) {
  const isProactive = draft.posture === 'proactive';
  const problem = (field: string) => (refused === field ? message : null);
  return (
    <Section title="When it fires" lead={saidOf(draft)}>
      <div className="stack">
        <SegmentedControl
          className="fit"
          aria-label="Posture"
          data={[
            { value: 'reactive', label: 'When it happens' },
            { value: 'proactive', label: 'When it is missing' },
          ]}
          value={draft.posture}
          onChange={(posture) =>
            set({
              posture,
              within_seconds: posture === 'proactive' ? draft.within_seconds || HOUR * SECONDS : draft.within_seconds,
            })
          }
        />
        <div className="fields">
          {isProactive ? (
            <TextInput
              className="wide"
              label="The event that must follow"
              description="A rule; when nothing that matches it comes in time, the trigger fires"
              placeholder='event == "connection_succeeded"'
              classNames={{ input: 'mono' }}
              value={draft.expect}
              error={problem('expect')}
              onChange={(event) => set({ expect: event.currentTarget.value })}
            />
          ) : (
            <NumberInput
              label="Matching events"
              min={1}
              max={1000}
              value={draft.threshold}
              error={problem('threshold')}
              onChange={(value) => set({ threshold: Number(value) || 1 })}
            />
          )}
          <NumberInput
            label="Within minutes"
            description={isProactive ? undefined : '0: however long it takes'}
            min={0}
            max={10_080}
            value={draft.within_seconds / SECONDS}
            error={problem('within_seconds')}
            onChange={(value) => set({ within_seconds: Math.round(Number(value) * SECONDS) })}
          />
          <NumberInput
            label="Then silent for minutes"
            min={0}
            max={10_080}
            value={draft.cooldown_seconds / SECONDS}
            error={problem('cooldown_seconds')}
            onChange={(value) => set({ cooldown_seconds: Math.round(Number(value) * SECONDS) })}
          />
          <Which {...{ draft, set, problem, language }} />
        </div>
      </div>
    </Section>
  );
}

interface WhichProps extends Pick<FieldsProps, 'draft' | 'set'> {
  problem: (field: string) => string | null;
  language: Language;
}

/** What is counted together, and what is looked at at all. */
const Which = ({ draft, set, problem, language }: WhichProps) => (
  <>
    <TagsInput
      label="For each of"
      description="Events are counted, and cases opened, for each value by itself"
      data={Object.keys(language.variables)}
      maxTags={5}
      value={draft.group_by}
      error={problem('group_by')}
      onChange={(group_by) => set({ group_by })}
    />
    <MultiSelect
      label="Kinds of event"
      description="Empty: those that the rule can match"
      data={language.kinds.map(({ event }) => event)}
      searchable
      value={draft.event_types}
      error={problem('event_types')}
      onChange={(event_types) => set({ event_types })}
    />
  </>
);

function saidOf({ posture, threshold, within_seconds, group_by, cooldown_seconds }: TriggerDraft): string {
  const minutes = within_seconds / SECONDS;
  const what =
    posture === 'proactive'
      ? `After a matching event, when what must follow does not come within ${minutes} min`
      : threshold === 1
        ? 'At every matching event'
        : `At ${threshold} matching events${minutes > 0 ? ` within ${minutes} min` : ''}`;
  const each = group_by.length > 0 ? `, for each ${group_by.join(' and ')}` : '';
  return `${what}${each}${cooldown_seconds > 0 ? `, then silent for ${cooldown_seconds / SECONDS} min` : ''}.`;
}

export function CaseFields({ draft, set, refused, message }: FieldsProps) {
  const settings = draft.case;
  const put = (change: Partial<TriggerDraft['case']>) => set({ case: { ...settings, ...change } });
  return (
    <Section title="Its case" lead="What it found is gathered in a case, until that is resolved.">
      <div className="fields">
        <Switch
          label="Opens a case"
          checked={settings.open}
          onChange={(event) => put({ open: event.currentTarget.checked })}
        />
        <Switch
          label="Resolved by recovery"
          description="By the success that belongs to the failure"
          checked={settings.auto_resolve}
          disabled={!settings.open}
          onChange={(event) => put({ auto_resolve: event.currentTarget.checked })}
        />
        <Switch
          label="Tells of its end too"
          checked={settings.notify_on_resolve}
          disabled={!settings.open}
          onChange={(event) => put({ notify_on_resolve: event.currentTarget.checked })}
        />
        <TextInput
          className="wide"
          label="Resolved by the event"
          placeholder="A rule, instead of the recovery"
          classNames={{ input: 'mono' }}
          value={settings.resolve_rule ?? ''}
          disabled={!settings.open}
          error={refused === 'case.resolve_rule' ? message : null}
          onChange={(event) => put({ resolve_rule: event.currentTarget.value || null })}
        />
        <NumberInput
          label="Opened again within hours"
          min={0}
          max={720}
          value={settings.reopen_window_seconds / 3600}
          disabled={!settings.open}
          onChange={(value) => put({ reopen_window_seconds: Math.round(Number(value) * 3600) })}
        />
        <NumberInput
          label="Tells again every so many events"
          placeholder="Never"
          min={1}
          value={settings.notify_every ?? ''}
          disabled={!settings.open}
          onChange={(value) => put({ notify_every: value === '' ? null : Number(value) })}
        />
      </div>
    </Section>
  );
}
