import { Button, PasswordInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useId, useState } from 'react';
import { type RouterOutputs, trpc } from '../api.ts';
import { BASE_PATH } from '../base-path.ts';
import { Failure } from '../components/failure.tsx';
import { Icon } from '../components/icon.tsx';
import {
  announceSignIn,
  CONFIRMED_PATH,
  listProviders,
  onSignIn,
  reasonOf,
  signedOut,
  signIn,
  signInError,
  signInPath,
} from '../session.ts';

interface SignInProps {
  /** Error code of the request that led here. */
  reason: string;
  /** Covers a page whose state is kept. */
  over?: boolean;
  /** The user of the ended session. Another user gets a fresh page. */
  previousUser?: RouterOutputs['users']['me'];
}

/** Of a session that somebody else ended, or whose cookie is gone. */
const ENDED = 'Your session has ended. Sign in to continue; your input is kept.';

export function SignInPage({ reason, over = false, previousUser }: SignInProps) {
  const [key, setKey] = useState('');
  const queries = useQueryClient();
  const heading = useId();
  useEffect(() => {
    if (!over) document.title = 'Sign in · Data pipelines';
  }, [over]);
  const signing = useMutation({
    mutationFn: async (api_key: string | null) => {
      if (api_key !== null) await signIn(api_key);
      const me = await queries.fetchQuery(trpc.users.me.queryOptions(undefined, { staleTime: 0 }));
      if (previousUser && me.id !== previousUser.id) window.location.reload();
      signedOut.set(null);
      await queries.invalidateQueries();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (key.trim() !== '') signing.mutate(key.trim());
  };
  const { mutate: enter } = signing;
  useEffect(() => onSignIn(() => enter(null)), [enter]);
  const explanation = reasonOf((over ? null : signInError()) ?? reason) ?? (over ? ENDED : null);
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
        <Providers over={over} />
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

/** Links, not buttons: the browser leaves for the provider. Over a page in another tab, so that its input is kept. */
function Providers({ over }: { over: boolean }) {
  const providers = useQuery({ queryKey: ['sign-in-providers'], queryFn: listProviders, staleTime: Infinity });
  if (!providers.data?.length) return null;
  const here = `${window.location.pathname}${window.location.search}`;
  return (
    <div className="stack">
      {providers.data.map((provider) => (
        <Button
          key={provider.id}
          component="a"
          variant="default"
          fullWidth
          href={signInPath(
            provider,
            over ? BASE_PATH + CONFIRMED_PATH : signInError() === null ? here : `${BASE_PATH}/console`,
          )}
          {...(over && { target: '_blank', rel: 'noopener' })}
        >
          Sign in with {provider.name}
        </Button>
      ))}
      <p className="dimmed">Or use an API key:</p>
    </div>
  );
}

/** The end of a sign-in in a tab of its own. The tab that waits for it continues. */
export function SignedInPage() {
  const problem = signInError();
  useEffect(() => {
    document.title = 'Sign in · Data pipelines';
    if (problem === null) announceSignIn();
  }, [problem]);
  return (
    <main className="sign-in">
      <div className="card sign-in-card">
        <span className="empty-icon">
          <Icon name={problem === null ? 'check' : 'alert'} size={24} />
        </span>
        <h1>{problem === null ? 'You are signed in' : 'Sign-in failed'}</h1>
        <p role="status" className={problem === null ? 'dimmed' : 'sign-in-reason'}>
          {problem === null ? 'Close this tab and continue in the other one.' : (reasonOf(problem) ?? problem)}
        </p>
      </div>
    </main>
  );
}
