import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { trpc } from '../../api.ts';
import { Confirm } from '../../components/confirm.tsx';
import { QueryView } from '../../components/query-view.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Section } from '../../components/page.tsx';
import { Status } from '../../components/status.tsx';
import { useAction } from '../../use-action.ts';

/** The browsers in which the user is signed in. */
export function SessionsSection() {
  const sessions = useQuery(trpc.users.listSessions.queryOptions({}));
  const end = useAction(trpc.users.endSession, { done: 'Session ended', refresh: [trpc.users.listSessions] });
  return (
    <Section title="Sessions" lead="Browsers in which you are signed in to the console.">
      <QueryView query={sessions} skeleton={null}>
        {(list) => (
          <ul className="lines">
            {list.map(({ id, key_prefix, provider, created_at, last_used_at, is_current }) => (
              <li key={id}>
                <code className="grow">{key_prefix ?? provider}</code>
                <span className="dimmed">
                  Signed in <RelativeTime at={created_at} />, last used <RelativeTime at={last_used_at} />
                </span>
                {is_current ? (
                  <Status value="live" label="This session" />
                ) : (
                  <Confirm
                    title="End this session?"
                    action="End session"
                    onConfirm={() => end.mutate({ session_id: id })}
                    trigger={(open) => (
                      <Button size="xs" variant="light" color="red" onClick={open}>
                        End
                      </Button>
                    )}
                  >
                    Its browser is signed out with the next request, and loses input that is not saved.
                  </Confirm>
                )}
              </li>
            ))}
          </ul>
        )}
      </QueryView>
    </Section>
  );
}
