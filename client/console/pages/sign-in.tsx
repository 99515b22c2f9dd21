import { Button, PasswordInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useId, useState } from 'react';
import { type RouterOutputs, trpc } from '../api.ts';
import { Failure } from '../components/failure.tsx';
import { Icon } from '../components/icon.tsx';
import { reasonOf, signedOut, signIn } from '../session.ts';

interface SignInProps {
  /** Error code of the request that led here. */
  reason: string;
  /** Covers a page whose state is kept. */
  over?: boolean;
  /** The user of the ended session. Another user gets a fresh page. */
  previousUser?: RouterOutputs['users']['me'];
}

export function SignInPage({ reason, over = false, previousUser }: SignInProps) {
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
      if (previousUser && me.id !== previousUser.id) window.location.reload();
      signedOut.set(null);
      await queries.invalidateQueries();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (key.trim() !== '') signing.mutate();
  };
  const explanation = reasonOf(reason);
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
        {explanation ? (
          <p role="status" className="sign-in-reason">
            {explanation}
          </p>
        ) : (
          <p className="dimmed">
            Use your API key. The service prints the first key when it starts for the first time.
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
        {signing.error && <Failure title="Sign-in failed" error={signing.error} />}
        <Button type="submit" fullWidth loading={signing.isPending} disabled={key.trim() === ''}>
          Sign in
        </Button>
      </form>
    </Root>
  );
}
