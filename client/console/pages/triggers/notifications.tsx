import { Button, Checkbox, SegmentedControl } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { type RouterInputs, trpc } from '../../api.ts';
import { Failure } from '../../components/failure.tsx';
import { Section } from '../../components/page.tsx';
import { useCurrentUser, usePermission } from '../../current-user.ts';
import { useAction } from '../../use-action.ts';
import { ActionFields } from './action-fields.tsx';
import { TestMessage } from './test-message.tsx';
import { ACTIONS } from './actions-editor.tsx';
import type { Action } from './trigger-draft.ts';

type Notifying = RouterInputs['automation']['setUpNotifications']['action'];

const PLACES = [
  { value: 'send_email', label: 'Email' },
  { value: 'send_chat_message', label: 'Chat' },
  { value: 'call_webhook', label: 'Webhook' },
] as const;

/** Where failures and other problems are sent, set up once for all system triggers. */
export function Notifications() {
  const { email } = useCurrentUser();
  const may = usePermission('triggers.update');
  const start = (type: Notifying['type']): Action => {
    const action = ACTIONS[type].create();
    return action.type === 'send_email' ? { ...action, recipients: [email] } : action;
  };
  const [action, setAction] = useState(() => start('send_email'));
  const [withDigest, setWithDigest] = useState(true);
  const save = useAction(trpc.automation.setUpNotifications, { done: 'Notifications set up', failed: null });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate({ action: action as Notifying, daily_digest: withDigest });
  };
  return (
    <Section
      title="Set up notifications"
      lead="Problems open a case, but are not sent anywhere yet. This adds an action to every system trigger."
    >
      <form className="stack" onSubmit={submit} noValidate>
        <SegmentedControl
          className="fit"
          aria-label="Send to"
          data={PLACES.map((one) => ({ ...one }))}
          value={action.type}
          onChange={(type) => setAction(start(type as Notifying['type']))}
        />
        <ActionFields action={action} onChange={setAction} />
        {action.type === 'send_email' && (
          <p className="dimmed">Email needs a mail server: the operator of the service sets SMTP_URL.</p>
        )}
        <Checkbox
          label="Also send a daily digest"
          description="Runs, failures, open cases and late data, at 08:00"
          checked={withDigest}
          onChange={(event) => setWithDigest(event.currentTarget.checked)}
        />
        {save.error && <Failure title="Notifications not set up" error={save.error} />}
        <div className="form-foot">
          <TestMessage action={action} />
          <Button type="submit" disabled={!may} loading={save.isPending}>
            Set up notifications
          </Button>
        </div>
      </form>
    </Section>
  );
}
