import { Alert, Button, Modal, Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { useCurrentUser } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { CopyField } from '../../components/copy-field.tsx';
import { formatDateTime, pluralize } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { notifyFailure } from '../../components/notices.tsx';
import { Section } from '../../components/page.tsx';
import { labelOf, Status } from '../../components/status.tsx';
import { forgetConfirmation } from '../../confirm-session.tsx';
import { signedOut, signIn } from '../../session.ts';
import { useAction } from '../../use-action.ts';

const EXPIRING_SOON_DAYS = 14;

/** The current API key, masked, with its expiry, rotation and the other keys of the user. */
export function ApiKeySection() {
  const { api_key } = useCurrentUser();
  const { prefix, days_remaining, expires_at } = api_key;
  return (
    <Section
      title="API key"
      lead="For the API, the CLI and signing in here. A key is shown only once, when it is created."
      actions={<Rotation />}
    >
      <div className="stack">
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
          Expires {formatDateTime(expires_at)} · Last used <RelativeTime at={api_key.last_used_at} never="never" />
        </p>
        <Keys />
      </div>
    </Section>
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
      <Modal
        opened={isOpen}
        onClose={close}
        title={created ? 'Your new API key' : 'Rotate API key'}
        size="lg"
        // A stray click must not lose the key before it is saved.
        closeOnClickOutside={!created}
        closeOnEscape={!created}
      >
        {created ? (
          <div className="stack">
            <Alert color="yellow" icon={<Icon name="alert" />} title="Save this key now">
              It is shown only once.
            </Alert>
            <CopyField label="API key" value={created.api_key} />
            <div className="form-foot">
              <Button onClick={close}>I saved my key</Button>
            </div>
          </div>
        ) : (
          <div className="stack">
            <p>This creates a key that is valid for 90 days. Switch every client of the current key to the new one.</p>
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
      </Modal>
    </>
  );
}

function Keys() {
  const keys = useQuery(trpc.users.listKeys.queryOptions({}));
  const revoke = useAction(trpc.users.revokeKey, { done: 'Key revoked', refresh: [trpc.users.listKeys] });
  return (
    <QueryView query={keys} skeleton={null}>
      {(list) => (
        <details className="fold">
          <summary>{pluralize(list.length, 'key')}</summary>
          <ul className="lines">
            {list.map((key) => (
              <li key={key.id}>
                <code className="grow">{key.prefix}</code>
                <span className="dimmed">
                  Created <RelativeTime at={key.created_at} />, {key.status === 'live' ? 'expires' : 'ended'}{' '}
                  <RelativeTime at={key.revoked_at ?? key.expires_at} />
                </span>
                <Status
                  value={key.is_current ? 'live' : key.status}
                  label={key.is_current ? 'This session' : labelOf(key.status)}
                />
                {key.status === 'live' && !key.is_current && (
                  <Confirm
                    title={`Revoke ${key.prefix}?`}
                    action="Revoke key"
                    onConfirm={() => revoke.mutate({ key_id: key.id })}
                    trigger={(open) => (
                      <Button size="xs" variant="light" color="red" loading={revoke.isPending} onClick={open}>
                        Revoke
                      </Button>
                    )}
                  >
                    Requests with this key fail from now on.
                  </Confirm>
                )}
              </li>
            ))}
          </ul>
        </details>
      )}
    </QueryView>
  );
}
