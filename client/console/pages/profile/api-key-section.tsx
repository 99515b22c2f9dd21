import { Button, Select } from '@mantine/core';
import { useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { useCurrentUser } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { CreateKeyDialog, KeyModal } from '../../components/create-key.tsx';
import { KeyList } from '../../components/key-list.tsx';
import { KeyShownOnce } from '../../components/copy-field.tsx';
import { formatDateTime, pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { notifyFailure } from '../../components/notices.tsx';
import { Section } from '../../components/page.tsx';
import { forgetConfirmation } from '../../confirm-session.tsx';
import { signedOut, signIn } from '../../session.ts';
import { useAction } from '../../use-action.ts';

const EXPIRING_SOON_DAYS = 14;

/** The API keys of the user: the one of this session, masked, with its expiry and rotation, and the others. */
export function ApiKeySection() {
  const { api_key } = useCurrentUser();
  return (
    <Section
      title="API key"
      lead="For the API, the CLI and signing in here. A key is shown only once, when it is created."
      actions={<KeyActions canRotate={api_key !== null} />}
    >
      <div className="stack">
        {api_key && <CurrentKey apiKey={api_key} />}
        <KeyList />
      </div>
    </Section>
  );
}

function CurrentKey({ apiKey }: { apiKey: NonNullable<RouterOutputs['users']['me']['api_key']> }) {
  const { prefix, days_remaining, expires_at, last_used_at } = apiKey;
  return (
    <>
      <div className="key-field">
        <code aria-label="API key, masked">
          {prefix}
          <span aria-hidden="true">{'_••••••••••••••••••••••••'}</span>
        </code>
        <span className="status" data-tone={days_remaining <= EXPIRING_SOON_DAYS ? 'warn' : 'good'}>
          {pluralize(days_remaining, 'day')} left
        </span>
      </div>
      <p className="dimmed">
        Expires {formatDateTime(expires_at)} · Last used <RelativeTime at={last_used_at} never="never" />
      </p>
    </>
  );
}

function KeyActions({ canRotate }: { canRotate: boolean }) {
  const [isCreating, setCreating] = useState(false);
  return (
    <div className="row">
      <Button variant="default" leftSection={<Icon name="key" size={16} />} onClick={() => setCreating(true)}>
        Create key
      </Button>
      {canRotate && <Rotation />}
      {isCreating && <CreateKeyDialog onClose={() => setCreating(false)} />}
    </div>
  );
}

const GRACE_PERIODS = [
  { value: '0', label: 'Revoke immediately' },
  { value: '24', label: 'Keep for 1 day' },
  { value: '168', label: 'Keep for 1 week' },
];

function Rotation() {
  const [isOpen, setOpen] = useState(false);
  const [grace, setGrace] = useState('24');
  const [created, setCreated] = useState<RouterOutputs['users']['rotateKey'] | null>(null);
  const rotate = useAction(trpc.users.rotateKey, {
    failed: 'Key not rotated',
    refresh: [trpc.users.me, trpc.users.listKeys],
    after: async (fresh) => {
      setCreated(fresh);
      forgetConfirmation();
      // Moves the session to the new key, because it would end with the old one.
      await signIn(fresh.api_key).then(
        () => signedOut.set(null),
        (error: unknown) => notifyFailure('Sign in again with the new key', error),
      );
    },
  });
  const close = () => {
    setOpen(false);
    setCreated(null);
  };
  return (
    <>
      <Button variant="default" leftSection={<Icon name="refresh" size={16} />} onClick={() => setOpen(true)}>
        Rotate key
      </Button>
      {isOpen && (
        <KeyModal title={created ? 'Your new API key' : 'Rotate API key'} isShown={created !== null} onClose={close}>
          {created ? (
            <div className="stack">
              <KeyShownOnce value={created.api_key} />
              <div className="form-foot">
                <Button onClick={close}>I saved my key</Button>
              </div>
            </div>
          ) : (
            <div className="stack">
              <p>
                This creates a key that is valid for 90 days. Switch every client of the current key to the new one.
              </p>
              <Select
                label="Current key"
                data={GRACE_PERIODS}
                value={grace}
                onChange={(hours) => setGrace(hours ?? '24')}
              />
              <div className="form-foot">
                <Button variant="default" onClick={close}>
                  Cancel
                </Button>
                <Button loading={rotate.isPending} onClick={() => rotate.mutate({ grace_hours: Number(grace) })}>
                  Rotate key
                </Button>
              </div>
            </div>
          )}
        </KeyModal>
      )}
    </>
  );
}
