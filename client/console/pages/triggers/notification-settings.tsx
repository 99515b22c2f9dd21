import { Button, Select, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { Section } from '../../components/page.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { useCurrentUser, usePermission } from '../../current-user.ts';
import { useAction } from '../../use-action.ts';

type Settings = RouterOutputs['automation']['getNotificationSettings'];
type Severity = NonNullable<Settings['urgent_severity']>;

const URGENT: { value: Severity | ''; label: string }[] = [
  { value: 'critical', label: 'Critical' },
  { value: 'high', label: 'High and critical' },
  { value: 'warning', label: 'Warning and above' },
  { value: '', label: 'Nothing' },
];

/** Quiet hours and the daily digest of the account. */
export function NotificationSettings() {
  const settings = useQuery(trpc.automation.getNotificationSettings.queryOptions({}));
  return <QueryView query={settings}>{(data) => <Form settings={data} />}</QueryView>;
}

function Form({ settings }: { settings: Settings }) {
  const { account } = useCurrentUser();
  const may = usePermission('triggers.update');
  const [edits, setEdits] = useState<Partial<Settings>>({});
  const save = useAction(trpc.automation.updateNotificationSettings, {
    done: 'Notification settings saved',
    failed: null,
    refresh: [trpc.automation.getNotificationSettings],
    after: () => setEdits({}),
  });
  const { quiet_from, quiet_until, urgent_severity, digest_at, timezone } = { ...settings, ...edits };
  const set = (change: Partial<Settings>) => setEdits((before) => ({ ...before, ...change }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate({ quiet_from, quiet_until, urgent_severity, digest_at, timezone });
  };
  return (
    <Section
      title="Quiet hours and daily digest"
      lead="Emails and chat messages wait for the end of quiet hours. The digest is sent by the trigger Daily digest."
    >
      <form className="stack" onSubmit={submit} noValidate>
        <fieldset className="bare-fieldset fields" disabled={!may}>
          <Time label="Quiet from" value={quiet_from} onChange={(time) => set({ quiet_from: time })} />
          <Time label="Quiet until" value={quiet_until} onChange={(time) => set({ quiet_until: time })} />
          <Select
            label="Sent during quiet hours"
            data={URGENT}
            allowDeselect={false}
            value={urgent_severity ?? ''}
            onChange={(value) => set({ urgent_severity: value || null })}
          />
          <Time label="Daily digest at" value={digest_at} onChange={(time) => set({ digest_at: time })} />
          <Select
            label="Time zone"
            searchable
            data={[
              { value: '', label: `Account (${account.timezone})` },
              ...Intl.supportedValuesOf('timeZone').map((zone) => ({ value: zone, label: zone })),
            ]}
            limit={100}
            value={timezone ?? ''}
            onChange={(zone) => set({ timezone: zone || null })}
          />
        </fieldset>
        <Upcoming settings={settings} />
        {save.error && <Failure title="Notification settings not saved" error={save.error} />}
        <div className="form-foot">
          <Button type="submit" disabled={!may || Object.keys(edits).length === 0} loading={save.isPending}>
            Save notification settings
          </Button>
        </div>
      </form>
    </Section>
  );
}

const Upcoming = ({ settings }: { settings: Settings }) => (
  <>
    {settings.quiet_now_until && (
      <p className="dimmed">
        Quiet hours end <RelativeTime at={settings.quiet_now_until} />
      </p>
    )}
    {settings.next_digest_at && (
      <p className="dimmed">
        Next digest <RelativeTime at={settings.next_digest_at} />
      </p>
    )}
  </>
);

const Time = (props: { label: string; value: string | null; onChange: (time: string | null) => void }) => (
  <TextInput
    label={props.label}
    type="time"
    value={props.value ?? ''}
    onChange={(event) => props.onChange(event.currentTarget.value || null)}
  />
);
