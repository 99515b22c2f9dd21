import { Alert, Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useLocation } from 'wouter';
import { client } from '../api.ts';
import { CopyField } from '../components/copy-field.tsx';
import { Failure } from '../components/failure.tsx';
import { Icon } from '../components/icon.tsx';
import { signedOut, signIn, signOut } from '../session.ts';

/** In the fragment, which no server sees. */
const tokenOf = (hash: string) => new URLSearchParams(hash.slice(1)).get('token');

/** Takes an invitation: shows the API key, once, and signs in with it. Nothing happens before the button is pressed. */
export function InvitationPage() {
  const [token] = useState(() => tokenOf(window.location.hash));
  useEffect(() => {
    document.title = 'Invitation · Data pipelines';
  }, []);
  const accepting = useMutation({
    mutationFn: async (accepted: string) => {
      // Whoever was signed in here gives way.
      await signOut();
      return client.users.acceptInvitation.mutate({ token: accepted });
    },
  });
  const made = accepting.data;
  return (
    <main className="sign-in">
      <div className="card sign-in-card">
        <span className="empty-icon">
          <Icon name={made ? 'key' : 'users'} size={24} />
        </span>
        {made ? (
          <KeyShown api_key={made.api_key} name={made.user.full_name} />
        ) : token === null ? (
          <>
            <h1>This link is not whole</h1>
            <p className="dimmed">Open the link of your invitation as it was given to you, up to its end.</p>
          </>
        ) : (
          <>
            <h1>You are invited</h1>
            <p className="dimmed">Accepting gives you an API key. It is shown once, and the link works once.</p>
            {accepting.error && <Failure title="The invitation was not accepted" error={accepting.error} />}
            <Button fullWidth loading={accepting.isPending} onClick={() => accepting.mutate(token)}>
              Accept the invitation
            </Button>
          </>
        )}
      </div>
    </main>
  );
}

function KeyShown({ api_key, name }: { api_key: string; name: string }) {
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const signing = useMutation({
    mutationFn: () => signIn(api_key),
    onSuccess: async () => {
      await queries.resetQueries();
      signedOut.set(null);
      // Away from the fragment, which would stay in the history.
      navigate('/', { replace: true });
    },
  });
  return (
    <>
      <h1>Welcome, {name}</h1>
      <Alert color="yellow" icon={<Icon name="alert" />} title="Keep this key now">
        It is shown only this once, and is your way in for 90 days.
      </Alert>
      <CopyField label="Your API key" value={api_key} />
      {signing.error && <Failure title="You are not signed in" error={signing.error} />}
      <Button fullWidth loading={signing.isPending} onClick={() => signing.mutate()}>
        I have kept it: sign in
      </Button>
    </>
  );
}
