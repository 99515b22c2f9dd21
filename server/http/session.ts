import { z } from 'zod';
import type { Caller } from '../api/audit/record.ts';
import type { Deps } from '../deps.ts';
import { ApiError, RequestShapeError } from '../platform/errors.ts';
import { endSession, openSession, SESSION_DAYS } from '../resources/users/sessions.ts';
import { signOutUrl } from '../resources/users/sign-in/flow.ts';
import { unauthenticatedCall } from './errors.ts';
import { readJson } from './body.ts';
import type { Handler } from './edge.ts';
import { createSignInLimit } from './session-limit.ts';
import type { HttpExchange } from './exchange.ts';

/** Sent by the console with every change. A form on another site cannot set it. */
export const CONSOLE_HEADER = 'x-requested-by';
const CONSOLE_NAME = 'console';

const SignIn = z.strictObject({ api_key: z.string().trim().min(1).max(512) });

/** POST: signs in with an API key and sets the session cookie. @throws ApiError 401, 403, 429 */
export function signIn(deps: Deps): Handler {
  const limit = createSignInLimit();
  return async (exchange) => {
    const { request } = exchange;
    const address = exchange.address();
    requireConsole(deps, request);
    const body = SignIn.safeParse(await readJson(request));
    if (!body.success) {
      throw new RequestShapeError([{ loc: ['body', 'api_key'], msg: 'API key required', type: 'value_error' }]);
    }
    const opened = await openSession(deps, body.data.api_key, auditOf(exchange)).catch((error: unknown) => {
      if (error instanceof ApiError) limit.noteFailure({ address, api_key: body.data.api_key });
      throw error;
    });
    return new Response(null, {
      status: 204,
      headers: { 'set-cookie': sessionCookie(deps, opened.token, SESSION_DAYS * 86_400) },
    });
  };
}

/** DELETE: signs out. The response names the page where the provider ends its own session, if it has one. */
export const signOut =
  (deps: Deps): Handler =>
  async (exchange) => {
    requireConsole(deps, exchange.request);
    const token = tokenIn(deps, exchange.request);
    const ended = token === null ? null : await endSession(deps, token, auditOf(exchange));
    const headers = { 'set-cookie': sessionCookie(deps, '', 0) };
    const sign_out_url = ended && (await signOutUrl(deps, ended));
    return sign_out_url ? Response.json({ sign_out_url }, { headers }) : new Response(null, { status: 204, headers });
  };

const auditOf = (exchange: HttpExchange): Caller => unauthenticatedCall(exchange, '/session').caller;

/** The session token of a request from the console's own pages. Null for any other request, even with the cookie. */
export const sessionOf = (deps: Deps, request: Request): string | null =>
  isFromConsole(deps, request) ? tokenIn(deps, request) : null;

function requireConsole(deps: Deps, request: Request): void {
  if (!isFromConsole(deps, request))
    throw new ApiError(403, 'cross_site_request', 'Only the console may send this request');
}

/** In addition to SameSite=Strict: checks the origin that browsers report, and a header that other sites cannot set. */
function isFromConsole({ config }: Deps, request: Request): boolean {
  const { headers, method } = request;
  const site = headers.get('sec-fetch-site');
  if (site !== null && site !== 'same-origin') return false;
  const origin = headers.get('origin');
  // Behind a proxy, Host may differ from the host that the browser uses.
  const hosts = [headers.get('host') ?? new URL(request.url).host, new URL(config.PUBLIC_URL).host];
  if (origin !== null && !hosts.includes(URL.parse(origin)?.host ?? '')) return false;
  return method === 'GET' || method === 'HEAD' || headers.get(CONSOLE_HEADER) === CONSOLE_NAME;
}

export const isSecure = ({ config }: Deps) => config.PUBLIC_URL.startsWith('https:');
/**
 * With the prefix `__Host-`, other hosts of the domain and connections without TLS cannot set the cookie. It requires the
 * path `/`. Below a base path, cookies are not for the other applications of the host, so they have the weaker prefix.
 */
export const cookieName = (deps: Deps, name: string) =>
  isSecure(deps) ? `${deps.config.BASE_PATH ? '__Secure-' : '__Host-'}${name}` : name;
export const cookiePath = ({ config }: Deps) => config.BASE_PATH || '/';

function tokenIn(deps: Deps, request: Request): string | null {
  const value = cookieIn(request, cookieName(deps, 'session'));
  return value && /^[\w-]{1,128}$/.test(value) ? value : null;
}

export const cookieIn = (request: Request, name: string): string | null =>
  new Bun.CookieMap(request.headers.get('cookie') ?? '').get(name);

export const sessionCookie = (deps: Deps, token: string, maxAge: number) =>
  new Bun.Cookie(cookieName(deps, 'session'), token, {
    path: cookiePath(deps),
    httpOnly: true,
    sameSite: 'strict',
    secure: isSecure(deps),
    maxAge,
  }).toString();
