import { BASE_PATH } from './base-path.ts';
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
  user_disabled: 'Your user is disabled. Ask an administrator to enable it.',
  plan_limit_reached: 'Your account has as many users as its plan allows. Ask an administrator.',
  too_many_sign_ins: 'Too many failed sign-ins. Wait a minute and sign in again.',
  sign_in_account_changed: 'Your provider now names another account. Ask an administrator to delete your user there.',
  sign_in_account_unknown: 'Your provider names an account that does not exist here. Ask an operator to add it.',
  sign_in_code_refused:
    'Your provider refused to complete the sign-in: its code was used or has expired. Sign in again.',
  sign_in_denied: 'Your provider did not sign you in. Sign in again, or ask its administrator for access.',
  sign_in_domain_not_allowed: 'Addresses of your domain may not sign in with this provider.',
  sign_in_email_missing: 'Your provider sends no e-mail address. Its administrator can allow the scope email.',
  sign_in_email_taken: 'Another user has your e-mail address. Sign in as before, or ask an operator to link the users.',
  sign_in_email_unverified: 'Your e-mail address is not verified at your provider. Verify it there and sign in again.',
  sign_in_groups_unknown: 'Your provider does not list your groups. Its administrator can limit the groups it sends.',
  sign_in_no_role: 'None of your groups has a role here. Ask an administrator to add you to a group.',
  sign_in_not_recent: 'Your provider did not ask you to sign in again. Sign out there, then sign in again.',
  sign_in_not_started: 'This sign-in was completed before, took too long, or began in another browser. Sign in again.',
  sign_in_other_user: 'You signed in as another person. Sign in as the user of this session.',
  sign_in_provider_misconfigured: 'The provider and this service do not agree. Ask an operator to check its settings.',
  sign_in_provider_unknown: 'This provider is not set up.',
  sign_in_provider_unreachable: 'The provider cannot be reached. Try again later, or use an API key.',
  sign_in_token_expired: 'The sign-in has expired, or the clocks of provider and service differ. Sign in again.',
  sign_in_token_invalid: 'The provider sent a token that is not for this sign-in. Ask an operator to check the log.',
  sign_in_user_unknown: 'You have no user here. Ask an administrator to create one.',
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

/** Returns the page where the provider of the sign-in ends its own session, if it has one. */
export async function signOut(): Promise<string | null> {
  const response = await send('DELETE');
  if (response.status !== 200) return null;
  return ((await response.json()) as { sign_out_url?: string }).sign_out_url ?? null;
}

export interface SignInProvider {
  id: string;
  name: string;
}

export async function listProviders(): Promise<SignInProvider[]> {
  const response = await fetch(`${BASE_PATH}/console/providers`, { headers: CONSOLE_HEADERS });
  if (!response.ok) throw await ServiceError.from(response);
  return (await response.json()) as SignInProvider[];
}

/** The page that a sign-in in another tab ends on. */
export const CONFIRMED_PATH = '/console/confirmed';
const FINISHED = 'sign-in';

/** Reports a sign-in in this tab to the others. */
export function announceSignIn(): void {
  const channel = new BroadcastChannel(FINISHED);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has none
  channel.postMessage(null);
  channel.close();
}

/** Calls `done` when a sign-in ends in another tab. Returns what stops it. */
export function onSignIn(done: () => void): () => void {
  const channel = new BroadcastChannel(FINISHED);
  channel.addEventListener('message', done);
  return () => channel.close();
}

/** Where a sign-in with a provider starts. `to` is a path of this host, with the base path. */
export const signInPath = ({ id }: SignInProvider, to: string): string =>
  `${BASE_PATH}/console/sign-in/${id}?to=${encodeURIComponent(to)}`;

/** The error code of a sign-in that the service sent back to this page. */
export const signInError = (): string | null => new URLSearchParams(window.location.search).get('sign_in_error');

const send = (method: string, body?: object) =>
  fetch(`${BASE_PATH}/console/session`, {
    method,
    headers: { ...CONSOLE_HEADERS, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  }).catch(() => {
    throw new ServiceError('Can’t reach the service', 'network_error', null);
  });
