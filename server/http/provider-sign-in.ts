import type { Deps } from '../deps.ts';
import { authenticate } from '../api/authentication.ts';
import { recordRefusal } from '../api/audit/refusals.ts';
import { ApiError } from '../platform/errors.ts';
import {
  beginSignIn,
  completeSignIn,
  PENDING_SECONDS,
  type PendingSignIn,
  providerBy,
} from '../resources/users/sign-in/flow.ts';
import { signInPerson } from '../resources/users/sign-in/sign-in.ts';
import type { Handler } from './edge.ts';
import { unauthenticatedCall } from './errors.ts';
import { cookieIn, cookieName, cookiePath, isSecure, sessionCookie, sessionOf } from './session.ts';
import type { HttpExchange } from './exchange.ts';

/** The page of the console after a sign-in that confirms a session. It closes itself. */
const CONFIRMED_PAGE = '/console/confirmed';
const MAX_PATH = 500;

/** GET: the providers for the buttons of the sign-in page. */
export const listProviders =
  ({ config }: Deps): Handler =>
  () =>
    Response.json(config.OIDC_PROVIDERS.map(({ id, name }) => ({ id, name })));

/** GET: sends the browser to the provider. `to` is the page to open afterwards; with `confirm` the session is confirmed. */
export const startProviderSignIn = (deps: Deps): Handler =>
  redirecting(deps, async (exchange) => {
    const settings = providerBy(deps, exchange.params[0] ?? '');
    const { searchParams } = new URL(exchange.request.url);
    const session_id = searchParams.has('confirm') ? await sessionToConfirm(deps, exchange.request) : null;
    const to = session_id === null ? pathOf(deps, searchParams.get('to')) : `${deps.config.BASE_PATH}${CONFIRMED_PAGE}`;
    const { url, pending } = await beginSignIn(deps, settings, { to, session_id });
    const sealed = deps.secrets.seal(JSON.stringify(pending), PENDING);
    return redirect(url.href, pendingCookie(deps, sealed, PENDING_SECONDS));
  });

/** GET: the provider sends the browser back here. Sets the session cookie, or opens the sign-in page with the error's code. */
export const completeProviderSignIn = (deps: Deps): Handler =>
  redirecting(deps, async (exchange) => {
    const settings = providerBy(deps, exchange.params[0] ?? '');
    const { search, searchParams } = new URL(exchange.request.url);
    const pending = pendingOf(deps, exchange.request);
    if (pending?.provider !== settings.id || pending.state !== searchParams.get('state')) throw notStarted();
    if (pending.expires_at < deps.now().getTime()) throw notStarted();
    const proved = await completeSignIn(deps, settings, { pending, search });
    const { caller } = unauthenticatedCall(exchange, '');
    const opened = await signInPerson(deps, { ...proved, settings, session_id: pending.session_id, caller });
    return redirect(pending.to, sessionCookie(deps, opened.token, opened.max_age), pendingCookie(deps, '', 0));
  });

const notStarted = () =>
  new ApiError(
    401,
    'sign_in_not_started',
    'This browser did not start this sign-in, or it was completed already, or took over 10 minutes. Sign in again',
  );

/** Errors lead to the sign-in page, which explains their code: a person follows these addresses, not a program. */
const redirecting =
  (deps: Deps, handler: Handler): Handler =>
  async (exchange) => {
    try {
      return await handler(exchange);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      await recordRefusal(deps, error, () => refusedCall(exchange));
      const pending = pendingOf(deps, exchange.request);
      const page = pending?.session_id ? CONFIRMED_PAGE : '/console';
      const query = new URLSearchParams({ sign_in_error: error.code, request_id: exchange.request_id });
      return redirect(`${deps.config.BASE_PATH}${page}?${query.toString()}`, pendingCookie(deps, '', 0));
    }
  };

const refusedCall = (exchange: HttpExchange) => ({ ...unauthenticatedCall(exchange, ''), action: 'sign_in' });

/** @throws ApiError 401 unless the console sent the request with a session of a sign-in by a provider */
async function sessionToConfirm(deps: Deps, request: Request): Promise<string> {
  const { session } = await authenticate(deps, { authorization: null, session: sessionOf(deps, request) });
  return session!.id;
}

/** A path of this service. Anything else could lead a person elsewhere after the sign-in. */
function pathOf({ config: { BASE_PATH } }: Deps, to: string | null): string {
  const url = to === null || to.length > MAX_PATH ? null : URL.parse(to, 'http://service');
  const isOwn = url?.origin === 'http://service' && `${url.pathname}/`.startsWith(`${BASE_PATH}/`);
  // `/..//host` becomes `//host`, which is an address of another host.
  const isPath = to?.startsWith('/') && !url?.pathname.startsWith('//');
  return isOwn && isPath ? `${url.pathname}${url.search}` : `${BASE_PATH}/console`;
}

const PENDING = 'pending_sign_in';
const pendingName = (deps: Deps) => cookieName(deps, 'sign-in');

/** Lax, not Strict: the provider's page sends the browser back. It gives no access: it is encrypted and names a sign-in. */
const pendingCookie = (deps: Deps, value: string, maxAge: number) =>
  new Bun.Cookie(pendingName(deps), value, {
    path: cookiePath(deps),
    httpOnly: true,
    sameSite: 'lax',
    secure: isSecure(deps),
    maxAge,
  }).toString();

function pendingOf(deps: Deps, request: Request): PendingSignIn | null {
  const sealed = cookieIn(request, pendingName(deps));
  if (!sealed) return null;
  try {
    return JSON.parse(deps.secrets.open(sealed, PENDING)) as PendingSignIn;
  } catch {
    return null;
  }
}

function redirect(location: string, ...cookies: string[]): Response {
  const headers = new Headers({ location });
  for (const one of cookies) headers.append('set-cookie', one);
  return new Response(null, { status: 302, headers });
}
