import { createStore } from './store.ts';

/** The service accepts a session cookie only with this header, which other sites cannot send. */
export const CONSOLE_HEADERS = { 'x-requested-by': 'console' };

/** Error code of the request that found the session missing or ended; null while signed in. */
export const signedOut = createStore<string | null>(null);

export const reportSignedOut = (code: string): void => signedOut.set(code);

const REASONS: Record<string, string> = {
  token_expired: 'Your API key has expired. Sign in with a new key, or ask an administrator for an invitation.',
  invalid_token: 'Your API key was rotated or revoked, or your user was disabled. Sign in with another key.',
  session_ended: 'Your session has ended. Sign in to continue.',
};

/** Why the session ended, in a sentence; null when there was none. */
export const reasonOf = (code: string): string | null => REASONS[code] ?? null;

/** An error response to a request that does not go through the typed client. */
export class ServiceError extends Error {
  constructor(
    message: string,
    readonly code: string,
    readonly request_id: string | null,
  ) {
    super(message);
    this.name = 'ServiceError';
  }

  static async from(response: Response): Promise<ServiceError> {
    const { detail, code } = (await response.json().catch(() => ({}))) as { detail?: unknown; code?: string };
    const problem = Array.isArray(detail) ? (detail[0] as { msg?: string } | undefined)?.msg : detail;
    const message = typeof problem === 'string' ? problem : `The service responded with status ${response.status}`;
    return new ServiceError(message, code ?? String(response.status), response.headers.get('x-request-id'));
  }
}

/** @throws ServiceError */
export async function signIn(api_key: string): Promise<void> {
  const response = await send('POST', { api_key });
  if (!response.ok) throw await ServiceError.from(response);
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
    throw new ServiceError('Can’t reach the service', 'network_error', null);
  });
