import { Button, PasswordInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useId, useState } from 'react';
import { type RouterOutputs, trpc } from '../api.ts';
import { Failure } from '../components/failure.tsx';
import { Icon } from '../components/icon.tsx';
import { reasonOf, signedOut, signIn } from '../session.ts';

interface SignInProps {
  /** The code of the refusal that led here. */
  reason: string;
  /** Over a page whose state is to be kept. */
  over?: boolean;
  /** Who had been signed in: somebody else must not see his page. */
  formerly?: RouterOutputs['users']['me'];
}

export function SignInPage({ reason, over = false, formerly }: SignInProps) {
  const [key, setKey] = useState('');
  const queries = useQueryClient();
  const heading = useId();
  useEffect(() => {
    if (!over) document.title = 'Sign in · Data pipelines';
  }, [over]);
  const signing = useMutation({
    mutationFn: async () => {
      await signIn(key.trim());
      const me = await queries.fetchQuery(trpc.users.me.queryOptions(undefined, { staleTime: 0 }));
      if (formerly && me.id !== formerly.id) window.location.reload();
      signedOut.set(null);
      await queries.invalidateQueries();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (key.trim() !== '') signing.mutate();
  };
  const told = reasonOf(reason);
  const Root = over ? 'div' : 'main';
  return (
    <Root
      className="sign-in"
      data-over={over}
      {...(over && { role: 'dialog', 'aria-modal': true })}
      aria-labelledby={heading}
    >
      <form className="card sign-in-card" onSubmit={submit}>
        <span className="empty-icon">
          <Icon name="key" size={24} />
        </span>
        <h1 id={heading}>Sign in</h1>
        {told ? (
          <p role="status" className="sign-in-reason">
            {told}
          </p>
        ) : (
          <p className="dimmed">
            With your API key. The service prints the first one where it is started for the first time.
          </p>
        )}
        <PasswordInput
          label="API key"
          placeholder="dpm_…"
          autoComplete="current-password"
          value={key}
          onChange={(event) => setKey(event.currentTarget.value)}
          data-autofocus
          autoFocus
        />
        {signing.error && <Failure title="You are not signed in" error={signing.error} />}
        <Button type="submit" fullWidth loading={signing.isPending} disabled={key.trim() === ''}>
          Sign in
        </Button>
      </form>
    </Root>
  );
}
