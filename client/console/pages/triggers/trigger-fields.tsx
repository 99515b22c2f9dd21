import { MultiSelect, NumberInput, SegmentedControl, Select, Switch, TagsInput, TextInput } from '@mantine/core';
import { NameField } from '../../components/name-field.tsx';
import { Section } from '../../components/page.tsx';
import { labelOf } from '../../components/status.tsx';
import type { TriggerDraft } from './trigger-draft.ts';
import type { Language } from '../../answers.ts';

interface FieldsProps {
  draft: TriggerDraft;
  set: (change: Partial<TriggerDraft>) => void;
  /** The field that the service rejected, and its message. */
  refused: string;
  message: string;
  /** Whether the form was submitted: missing values are reported from then on. */
  isChecked: boolean;
}

const SEVERITIES = ['critical', 'high', 'warning', 'info', 'low'];

export const GeneralFields = ({ draft, set, isChecked }: FieldsProps) => (
  <Section title="General">
    <div className="fields">
      <NameField value={draft.name} isChecked={isChecked} onChange={(name) => set({ name })} />
      <Select
        label="Severity"
        data={SEVERITIES.map((value) => ({ value, label: labelOf(value) }))}
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
    <Section title="Conditions" lead={describeFiring(draft)}>
      <div className="stack">
        <SegmentedControl
          className="fit"
          aria-label="Fires when"
          data={[
            { value: 'reactive', label: 'Event occurs' },
            { value: 'proactive', label: 'Event is missing' },
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
              label="Expected event"
              description="A rule. The trigger fires if no matching event arrives in time"
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
            label="Time window (min)"
            description={isProactive ? undefined : '0 for no limit'}
            min={0}
            max={10_080}
            value={draft.within_seconds / SECONDS}
            error={problem('within_seconds')}
            onChange={(value) => set({ within_seconds: Math.round(Number(value) * SECONDS) })}
          />
          <NumberInput
            label="Cooldown (min)"
            min={0}
            max={10_080}
            value={draft.cooldown_seconds / SECONDS}
            error={problem('cooldown_seconds')}
            onChange={(value) => set({ cooldown_seconds: Math.round(Number(value) * SECONDS) })}
          />
          <GroupingFields {...{ draft, set, problem, language }} />
        </div>
      </div>
    </Section>
  );
}

interface GroupingProps extends Pick<FieldsProps, 'draft' | 'set'> {
  problem: (field: string) => string | null;
  language: Language;
}

/** How events are grouped, and which event types are evaluated. */
const GroupingFields = ({ draft, set, problem, language }: GroupingProps) => (
  <>
    <TagsInput
      label="Group by"
      description="Counts events and opens cases separately for each value"
      data={Object.keys(language.variables)}
      maxTags={5}
      value={draft.group_by}
      error={problem('group_by')}
      onChange={(group_by) => set({ group_by })}
    />
    <MultiSelect
      label="Event types"
      description="Leave empty for all types that the rule can match"
      data={language.kinds.map(({ event }) => event)}
      searchable
      value={draft.event_types}
      error={problem('event_types')}
      onChange={(event_types) => set({ event_types })}
    />
  </>
);

function describeFiring({ posture, threshold, within_seconds, group_by, cooldown_seconds }: TriggerDraft): string {
  const minutes = within_seconds / SECONDS;
  const what =
    posture === 'proactive'
      ? `Fires when no expected event follows a matching event within ${minutes} min`
      : threshold === 1
        ? 'Fires on every matching event'
        : `Fires on ${threshold} matching events${minutes > 0 ? ` within ${minutes} min` : ''}`;
  const each = group_by.length > 0 ? `, separately for each ${group_by.join(' and ')}` : '';
  return `${what}${each}${cooldown_seconds > 0 ? `, then pauses for ${cooldown_seconds / SECONDS} min` : ''}`;
}

export function CaseFields({ draft, set, refused, message }: FieldsProps) {
  const settings = draft.case;
  const put = (change: Partial<TriggerDraft['case']>) => set({ case: { ...settings, ...change } });
  return (
    <Section title="Case" lead="A case collects the matching events until it is resolved.">
      <div className="fields">
        <Switch
          label="Open a case"
          checked={settings.open}
          onChange={(event) => put({ open: event.currentTarget.checked })}
        />
        <Switch
          label="Resolve on recovery"
          description="When the success after the failure arrives"
          checked={settings.auto_resolve}
          disabled={!settings.open}
          onChange={(event) => put({ auto_resolve: event.currentTarget.checked })}
        />
        <Switch
          label="Notify when resolved"
          checked={settings.notify_on_resolve}
          disabled={!settings.open}
          onChange={(event) => put({ notify_on_resolve: event.currentTarget.checked })}
        />
        <TextInput
          className="wide"
          label="Resolve rule"
          placeholder="Replaces recovery"
          classNames={{ input: 'mono' }}
          value={settings.resolve_rule ?? ''}
          disabled={!settings.open}
          error={refused === 'case.resolve_rule' ? message : null}
          onChange={(event) => put({ resolve_rule: event.currentTarget.value || null })}
        />
        <NumberInput
          label="Reopen within (h)"
          min={0}
          max={720}
          value={settings.reopen_window_seconds / 3600}
          disabled={!settings.open}
          onChange={(value) => put({ reopen_window_seconds: Math.round(Number(value) * 3600) })}
        />
        <NumberInput
          label="Re-notify every N events"
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
