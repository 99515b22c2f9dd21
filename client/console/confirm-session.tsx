import { Button, Modal, PasswordInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import type { Fetch } from '../retry.ts';
import { CONSOLE_HEADERS, ServiceError } from './session.ts';
import { createStore } from './store.ts';

type Decide = (isConfirmed: boolean) => void;

/** Set while a request waits for the API key. */
const asking = createStore<Decide | null>(null);

/** Procedures that need a confirmed session. */
const PROTECTED = /\/users\.(rotateKey|createKey|invite|create)\b/;
const CONFIRMED_MS = 5 * 60_000;
let confirmedUntil = 0;

/** A new session is not confirmed yet. */
export const forgetConfirmation = (): void => {
  confirmedUntil = 0;
};

/** Asks for the API key before a request that needs a confirmed session, and again if the service requires it. */
export const confirmingFetch =
  (send: Fetch): Fetch =>
  async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    const isRefused = PROTECTED.test(url) && Date.now() > confirmedUntil && !(await ask());
    const response = await send(input, init);
    if (isRefused || response.status !== 403) return response;
    if (!(await response.clone().text()).includes('"confirmation_required"')) return response;
    return (await ask()) ? send(input, init) : response;
  };

async function ask(): Promise<boolean> {
  const isConfirmed = await new Promise<boolean>((decide) => {
    asking.get()?.(false);
    asking.set(decide);
  });
  asking.set(null);
  confirmedUntil = isConfirmed ? Date.now() + CONFIRMED_MS : 0;
  return isConfirmed;
}

/** Asks for the API key of the session before it creates keys. */
export function ConfirmSession() {
  const decide = asking.use();
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
  const response = await fetch('/trpc/users.confirmSession', {
    method: 'POST',
    headers: { ...CONSOLE_HEADERS, 'content-type': 'application/json' },
    body: JSON.stringify({ api_key }),
  });
  if (response.ok) return;
  const { error } = (await response.json()) as { error?: { message?: string; data?: { code?: string } } };
  throw new ServiceError(error?.message ?? 'The key was not accepted', error?.data?.code ?? '', null);
}
