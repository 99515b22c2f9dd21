import { Button, Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { client, type RouterOutputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { Section } from '../../components/page.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { QuietHoursFields, TimeOfDay } from '../../schedule/quiet-hours-fields.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { useCurrentUser, usePermission } from '../../current-user.ts';
import { useAction } from '../../use-action.ts';

type Settings = RouterOutputs['automation']['getNotificationSettings'];

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
    undo: {
      input: async () => settable(await client.automation.getNotificationSettings.query({})),
      isCurrent: async (saved) => {
        const now = await client.automation.getNotificationSettings.query({});
        return JSON.stringify(settable(now)) === JSON.stringify(settable(saved));
      },
    },
  });
  const wanted = settable({ ...settings, ...edits });
  const { quiet_from, quiet_until, urgent_severity, digest_at, timezone } = wanted;
  const set = (change: Partial<Settings>) => setEdits((before) => ({ ...before, ...change }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(wanted);
  };
  return (
    <Section
      title="Quiet hours and daily digest"
      lead="Emails and chat messages wait for the end of quiet hours. The digest is sent by the trigger Daily digest. Each user can add quiet hours on the page Profile."
    >
      <form className="stack" onSubmit={submit} noValidate>
        <fieldset className="bare-fieldset fields" disabled={!may}>
          <QuietHoursFields value={{ quiet_from, quiet_until, urgent_severity }} onChange={set} />
          <TimeOfDay label="Daily digest at" value={digest_at} onChange={(time) => set({ digest_at: time })} />
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

const settable = ({ quiet_from, quiet_until, urgent_severity, digest_at, timezone }: Settings) => ({
  quiet_from,
  quiet_until,
  urgent_severity,
  digest_at,
  timezone,
});

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
