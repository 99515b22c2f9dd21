import { Button } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { client, type RouterOutputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { Section } from '../../components/page.tsx';
import { QuietHoursFields } from '../../schedule/quiet-hours-fields.tsx';
import { useCurrentUser } from '../../current-user.ts';
import { useAction } from '../../use-action.ts';

type Preferences = RouterOutputs['users']['me']['notification_preferences'];

const settable = ({ quiet_from, quiet_until, urgent_severity }: Preferences) => ({
  quiet_from,
  quiet_until,
  urgent_severity,
});

/** The user's own quiet hours, beside those of the account. */
export function QuietHoursSection() {
  const me = useCurrentUser();
  const [edits, setEdits] = useState<Partial<Preferences>>({});
  const save = useAction(trpc.users.update, {
    done: 'Quiet hours saved',
    failed: null,
    after: () => setEdits({}),
    undo: {
      input: () => ({ user_id: me.id, notification_preferences: settable(me.notification_preferences) }),
      isCurrent: async (_saved, { notification_preferences }) => {
        const now = await client.users.me.query();
        return JSON.stringify(settable(now.notification_preferences)) === JSON.stringify(notification_preferences);
      },
    },
  });
  const preferences = settable({ ...me.notification_preferences, ...edits });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate({ user_id: me.id, notification_preferences: preferences });
  };
  return (
    <Section
      title="Quiet hours"
      lead={`Emails to you wait for their end, also outside the quiet hours of the account. Times are in ${me.timezone ?? me.account.timezone}.`}
    >
      <form className="stack" onSubmit={submit} noValidate>
        <div className="fields">
          <QuietHoursFields
            value={preferences}
            onChange={(change) => setEdits((before) => ({ ...before, ...change }))}
          />
        </div>
        {save.error && <Failure title="Quiet hours not saved" error={save.error} />}
        <div className="form-foot">
          <Button type="submit" disabled={Object.keys(edits).length === 0} loading={save.isPending}>
            Save quiet hours
          </Button>
        </div>
      </form>
    </Section>
  );
}
