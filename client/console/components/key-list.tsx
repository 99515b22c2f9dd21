import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { trpc } from '../api.ts';
import { useAction } from '../use-action.ts';
import { Confirm } from './confirm.tsx';
import { pluralize } from './format.ts';
import { QueryView } from './query-view.tsx';
import { RelativeTime } from './relative-time.tsx';
import { labelOf, Status } from './status.tsx';

/** The API keys of the caller or of a service account. */
export function KeyList({ user_id }: { user_id?: string }) {
  const keys = useQuery(trpc.users.listKeys.queryOptions({ user_id }));
  const revoke = useAction(trpc.users.revokeKey, {
    done: 'Key revoked',
    refresh: [trpc.users.listKeys, trpc.users.listServiceAccounts],
  });
  return (
    <QueryView query={keys} skeleton={null}>
      {(list) => (
        <details className="fold">
          <summary>{pluralize(list.length, 'key')}</summary>
          <ul className="lines">
            {list.map((key) => (
              <li key={key.id}>
                <span className="grow">
                  {key.name && <b>{key.name} </b>}
                  <code>{key.prefix}</code>
                  {key.scopes && <span className="dimmed"> {key.scopes.join(', ')}</span>}
                </span>
                <span className="dimmed">
                  Last used <RelativeTime at={key.last_used_at} never="never" />,{' '}
                  {key.status === 'live' ? 'expires' : 'ended'} <RelativeTime at={key.revoked_at ?? key.expires_at} />
                </span>
                <Status
                  value={key.is_current ? 'live' : key.status}
                  label={key.is_current ? 'This session' : labelOf(key.status)}
                />
                {key.status === 'live' && !key.is_current && (
                  <Confirm
                    title={`Revoke ${key.name ?? key.prefix}?`}
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
