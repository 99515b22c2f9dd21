import { Button } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { Section } from '../../components/page.tsx';
import { QuietHoursFields } from '../../schedule/quiet-hours-fields.tsx';
import { useCurrentUser } from '../../current-user.ts';
import { useAction } from '../../use-action.ts';

type Preferences = RouterOutputs['users']['me']['notification_preferences'];

/** The user's own quiet hours, beside those of the account. */
export function QuietHoursSection() {
  const me = useCurrentUser();
  const [edits, setEdits] = useState<Partial<Preferences>>({});
  const save = useAction(trpc.users.update, { done: 'Quiet hours saved', failed: null, after: () => setEdits({}) });
  const { quiet_from, quiet_until, urgent_severity } = { ...me.notification_preferences, ...edits };
  const preferences = { quiet_from, quiet_until, urgent_severity };
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
