import { createStore } from './store.ts';

/** Marks requests of the console: the service accepts a session's cookie only beside it. */
export const CONSOLE_HEADERS = { 'x-requested-by': 'console' };

/** Why nobody is signed in: the code of the refusal; null while somebody is, as far as we know. */
export const signedOut = createStore<string | null>(null);

export const reportSignedOut = (code: string): void => signedOut.set(code);

const REASONS: Record<string, string> = {
  token_expired: 'Your API key has expired. Sign in with a new one; an administrator can invite you again.',
  invalid_token:
    'The API key that you had signed in with was replaced or revoked, or your user is not active any more.',
  session_ended: 'Your session has ended. Sign in again to go on.',
};

/** A sentence for people; null when nobody had been signed in. */
export const reasonOf = (code: string): string | null => REASONS[code] ?? null;

/** What the service said to a request that does not go over the typed client. */
export class ServiceError extends Error {
  constructor(
    message: string,
    readonly code: string,
    readonly request_id: string | null,
  ) {
    super(message);
    this.name = 'ServiceError';
  }

  static async of(answer: Response): Promise<ServiceError> {
    const { detail, code } = (await answer.json().catch(() => ({}))) as { detail?: unknown; code?: string };
    const problem = Array.isArray(detail) ? (detail[0] as { msg?: string } | undefined)?.msg : detail;
    const message = typeof problem === 'string' ? problem : `The service answered ${answer.status}`;
    return new ServiceError(message, code ?? String(answer.status), answer.headers.get('x-request-id'));
  }
}

/** @throws ServiceError */
export async function signIn(api_key: string): Promise<void> {
  const answer = await send('POST', { api_key });
  if (!answer.ok) throw await ServiceError.of(answer);
}

export async function signOut(): Promise<void> {
  await send('DELETE');
}

const send = (method: string, body?: object) =>
  fetch('/console/session', {
    method,
    headers: { ...CONSOLE_HEADERS, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  }).catch(() => {
    throw new ServiceError('The service cannot be reached', 'network_error', null);
  });
