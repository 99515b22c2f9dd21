import { Alert, Button, Modal, Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { useMe } from '../../current-user.ts';
import { RelativeTime } from '../../components/relative-time.tsx';
import { CopyField } from '../../components/copy-field.tsx';
import { momentOf, plural } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { notifyFailure } from '../../components/notices.tsx';
import { Section } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';
import { signedOut, signIn } from '../../session.ts';
import { useAction } from '../../use-action.ts';

const SOON_DAYS = 14;

/** The API key: masked, as it is shown only once; how long it lasts; its replacement. */
export function ApiKeySection() {
  const { api_key } = useMe();
  const { prefix, days_remaining, expires_at } = api_key;
  return (
    <Section
      title="API key"
      lead="For programs, the command line and signing in here. It was shown once, when it was made."
      actions={<Rotation />}
    >
      <div className="stack">
        <div className="key-field">
          <code aria-label="API key, masked">
            {prefix}
            <span aria-hidden="true">{'_••••••••••••••••••••••••'}</span>
          </code>
          <span className="status" data-tone={days_remaining <= SOON_DAYS ? 'warn' : 'good'}>
            {plural(days_remaining, 'day')} left
          </span>
        </div>
        <p className="dimmed">
          Valid until {momentOf(expires_at)} · last used <RelativeTime at={api_key.last_used_at} never="not yet" />
        </p>
        <Keys />
      </div>
    </Section>
  );
}

const GRACES = [
  { value: '0', label: 'It ends at once' },
  { value: '24', label: 'It works for another day' },
  { value: '168', label: 'It works for another week' },
];

function Rotation() {
  const [isOpen, setOpen] = useState(false);
  const [grace, setGrace] = useState('24');
  const [made, setMade] = useState<RouterOutputs['users']['rotateKey'] | null>(null);
  const rotate = useAction(trpc.users.rotateKey, {
    failed: 'The key was not replaced',
    refresh: [trpc.users.me, trpc.users.listKeys],
    after: async (fresh) => {
      setMade(fresh);
      // The session goes over to the new key: it would end with the former one.
      await signIn(fresh.api_key).then(
        () => signedOut.set(null),
        (error: unknown) => notifyFailure('Sign in with the new key', error),
      );
    },
  });
  const close = () => {
    setOpen(false);
    setMade(null);
  };
  return (
    <>
      <Button variant="default" leftSection={<Icon name="refresh" size={16} />} onClick={() => setOpen(true)}>
        Rotate
      </Button>
      <Modal
        opened={isOpen}
        onClose={close}
        title={made ? 'Your new API key' : 'Replace the API key'}
        size="lg"
        // Until it is kept, a click beside the dialog must not lose it.
        closeOnClickOutside={!made}
        closeOnEscape={!made}
      >
        {made ? (
          <div className="stack">
            <Alert color="yellow" icon={<Icon name="alert" />} title="Keep it now">
              It is shown only this once.
            </Alert>
            <CopyField label="API key" value={made.api_key} />
            <div className="form-foot">
              <Button onClick={close}>I have kept it</Button>
            </div>
          </div>
        ) : (
          <div className="stack">
            <p>You get a new key, valid for 90 days. Whatever uses the present one needs the new one.</p>
            <Select label="The present key" data={GRACES} value={grace} onChange={(hours) => setGrace(hours ?? '24')} />
            <div className="form-foot">
              <Button variant="default" onClick={close}>
                Cancel
              </Button>
              <Button loading={rotate.isPending} onClick={() => rotate.mutate({ grace_hours: Number(grace) })}>
                Replace the key
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
  const revoke = useAction(trpc.users.revokeKey, { done: 'The key was revoked', refresh: [trpc.users.listKeys] });
  return (
    <QueryView query={keys} skeleton={null}>
      {(list) => (
        <details className="fold">
          <summary>{plural(list.length, 'key')} in all</summary>
          <ul className="lines">
            {list.map((key) => (
              <li key={key.id}>
                <code className="grow">{key.prefix}</code>
                <span className="dimmed">
                  made <RelativeTime at={key.created_at} />, {key.status === 'live' ? 'ends' : 'ended'}{' '}
                  <RelativeTime at={key.revoked_at ?? key.expires_at} />
                </span>
                <Status
                  value={key.is_current ? 'live' : key.status}
                  label={key.is_current ? 'in use here' : key.status}
                />
                {key.status === 'live' && !key.is_current && (
                  <Button
                    size="xs"
                    variant="light"
                    color="red"
                    loading={revoke.isPending}
                    onClick={() => revoke.mutate({ key_id: key.id })}
                  >
                    Revoke
                  </Button>
                )}
              </li>
            ))}
          </ul>
        </details>
      )}
    </QueryView>
  );
}
