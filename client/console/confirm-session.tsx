import { Button, Modal, PasswordInput } from '@mantine/core';
import { type FormEvent, useEffect, useState } from 'react';
import type { Fetch } from '../retry.ts';
import { BASE_PATH } from './base-path.ts';
import { CONSOLE_HEADERS, onSignIn, ServiceError } from './session.ts';
import { createStore } from './store.ts';

interface Question {
  decide(isConfirmed: boolean): void;
  /** Where the person signs in again with the provider. Null: the API key confirms the session. */
  path: string | null;
}

/** Set while a request waits for a confirmation. */
const asking = createStore<Question | null>(null);

/** Whether the session belongs to an API key. A sign-in with a provider confirms a session by itself for a while. */
let belongsToKey = true;

export const setSessionOfKey = (isOfKey: boolean): void => {
  belongsToKey = isOfKey;
};

/** Procedures that need a confirmed session. */
const PROTECTED = /\/users\.(rotateKey|createKey|invite|create)\b/;
const CONFIRMED_MS = 5 * 60_000;
let confirmedUntil = 0;

/** A new session is not confirmed yet. */
export const forgetConfirmation = (): void => {
  confirmedUntil = 0;
};

/** Asks for a confirmation before a request that needs one, and again if the service requires it. */
export const confirmingFetch =
  (send: Fetch): Fetch =>
  async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    const isAhead = belongsToKey && PROTECTED.test(url) && Date.now() > confirmedUntil;
    const isRefused = isAhead && !(await ask(null));
    const response = await send(input, init);
    if (isRefused || response.status !== 403) return response;
    const text = await response.clone().text();
    if (!text.includes('"confirmation_required"')) return response;
    return (await ask(/"sign_in_path":"([^"\\]+)"/.exec(text)?.[1] ?? null)) ? send(input, init) : response;
  };

async function ask(path: string | null): Promise<boolean> {
  const isConfirmed = await new Promise<boolean>((decide) => {
    asking.get()?.decide(false);
    asking.set({ decide, path });
  });
  asking.set(null);
  confirmedUntil = isConfirmed ? Date.now() + CONFIRMED_MS : 0;
  return isConfirmed;
}

/** Asks for the API key of the session, or for a sign-in in another tab. */
export function ConfirmSession() {
  const question = asking.use();
  if (question?.path != null) return <SignInAgain path={question.path} decide={question.decide} />;
  return <EnterKey decide={question?.decide ?? null} />;
}

/** In another tab, so that this page keeps its unsaved input. */
function SignInAgain({ path, decide }: { path: string; decide: Question['decide'] }) {
  useEffect(() => onSignIn(() => decide(true)), [decide]);
  return (
    <Modal opened onClose={() => decide(false)} title="Sign in again" zIndex={400}>
      <div className="stack">
        <p>Keys and credentials outlive this session. Sign in again to continue.</p>
        <div className="form-foot">
          <Button variant="default" onClick={() => decide(false)}>
            Cancel
          </Button>
          <Button component="a" href={path} target="_blank" rel="noopener">
            Sign in
          </Button>
        </div>
      </div>
    </Modal>
  );
}

function EnterKey({ decide }: { decide: Question['decide'] | null }) {
  const [api_key, setKey] = useState('');
  const [problem, setProblem] = useState<string | null>(null);
  const close = (isConfirmed: boolean) => {
    setKey('');
    setProblem(null);
    decide?.(isConfirmed);
  };
  const confirm = (event: FormEvent) => {
    event.preventDefault();
    // Otherwise the form of the dialog below is submitted, too.
    event.stopPropagation();
    sendKey(api_key.trim()).then(
      () => close(true),
      (error: Error) => setProblem(error.message),
    );
  };
  return (
    <Modal opened={decide !== null} onClose={() => close(false)} title="Confirm with your API key" zIndex={400}>
      <form className="stack" onSubmit={confirm} noValidate>
        <p>A new key or invitation outlives this session. Enter the API key that you signed in with.</p>
        <PasswordInput
          label="API key"
          autoComplete="current-password"
          data-autofocus
          value={api_key}
          error={problem}
          onChange={(event) => setKey(event.currentTarget.value)}
        />
        <div className="form-foot">
          <Button variant="default" onClick={() => close(false)}>
            Cancel
          </Button>
          <Button type="submit" disabled={api_key.trim() === ''}>
            Confirm
          </Button>
        </div>
      </form>
    </Modal>
  );
}

/** Without the typed client, whose requests wait for this one. @throws ServiceError */
async function sendKey(api_key: string): Promise<void> {
  const response = await fetch(`${BASE_PATH}/trpc/users.confirmSession`, {
    method: 'POST',
    headers: { ...CONSOLE_HEADERS, 'content-type': 'application/json' },
    body: JSON.stringify({ api_key }),
  });
  if (response.ok) return;
  const { error } = (await response.json()) as { error?: { message?: string; data?: { code?: string } } };
  throw new ServiceError(error?.message ?? 'The key was not accepted', error?.data?.code ?? '', null);
}
