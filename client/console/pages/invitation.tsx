import { Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useLocation } from 'wouter';
import { client } from '../api.ts';
import { Failure } from '../components/failure.tsx';
import { Icon } from '../components/icon.tsx';
import { KeyShownOnce } from '../components/copy-field.tsx';
import { signedOut, signIn, signOut } from '../session.ts';

/** The token is in the fragment, which is never sent to a server. */
const tokenOf = (hash: string) => new URLSearchParams(hash.slice(1)).get('token');

/** Accepts an invitation: shows the new API key once, then signs in with it. */
export function InvitationPage() {
  const [token] = useState(() => tokenOf(window.location.hash));
  useEffect(() => {
    document.title = 'Invitation · Data pipelines';
  }, []);
  const accepting = useMutation({
    mutationFn: async (invitation: string) => {
      // Ends the session of another user in this browser.
      await signOut();
      return client.users.acceptInvitation.mutate({ token: invitation });
    },
  });
  const accepted = accepting.data;
  return (
    <main className="sign-in">
      <div className="card sign-in-card">
        <span className="empty-icon">
          <Icon name={accepted ? 'key' : 'users'} size={24} />
        </span>
        {accepted ? (
          <NewKey api_key={accepted.api_key} name={accepted.user.full_name} />
        ) : token === null ? (
          <>
            <h1>This link is incomplete</h1>
            <p className="dimmed">Copy the full link of your invitation and open it again.</p>
          </>
        ) : (
          <>
            <h1>You have been invited</h1>
            <p className="dimmed">Accepting creates your API key. The key is shown once, and this link works once.</p>
            {accepting.error && <Failure title="Invitation not accepted" error={accepting.error} />}
            <Button fullWidth loading={accepting.isPending} onClick={() => accepting.mutate(token)}>
              Accept invitation
            </Button>
          </>
        )}
      </div>
    </main>
  );
}

function NewKey({ api_key, name }: { api_key: string; name: string }) {
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const signing = useMutation({
    mutationFn: () => signIn(api_key),
    onSuccess: async () => {
      await queries.resetQueries();
      signedOut.set(null);
      // Replaces the entry whose fragment contains the token.
      navigate('/', { replace: true });
    },
  });
  return (
    <>
      <h1>Welcome, {name}</h1>
      <KeyShownOnce label="Your API key" value={api_key} validity=" and expires in 90 days" />
      {signing.error && <Failure title="Sign-in failed" error={signing.error} />}
      <Button fullWidth loading={signing.isPending} onClick={() => signing.mutate()}>
        I saved my key, sign in
      </Button>
    </>
  );
}
