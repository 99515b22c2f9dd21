import { z } from 'zod';
import type { Deps } from '../deps.ts';
import { ApiError, RequestShapeError } from '../platform/errors.ts';
import { endSession, openSession, SESSION_DAYS } from '../resources/users/sessions.ts';
import { readJson } from './body.ts';
import type { Handler } from './edge.ts';
import { createSignInLimit } from './session-limit.ts';

/** Sent by the console with whatever changes something: a form of another site cannot set it. */
export const CONSOLE_HEADER = 'x-requested-by';
const CONSOLE_NAME = 'console';

const SignIn = z.strictObject({ api_key: z.string().trim().min(1).max(512) });

/** POST signs in: checks an API key and answers with the cookie. @throws ApiError 401, 403, 429. */
export function signIn(deps: Deps): Handler {
  const limit = createSignInLimit();
  return async ({ request, address: addressOf }) => {
    const address = addressOf();
    requireConsole(deps, request);
    limit.require(address);
    const body = SignIn.safeParse(await readJson(request));
    if (!body.success) {
      throw new RequestShapeError([{ loc: ['body', 'api_key'], msg: 'An API key is needed', type: 'value_error' }]);
    }
    const { token } = await openSession(deps, body.data.api_key).catch((error: unknown) => {
      if (error instanceof ApiError) limit.noteFailure(address);
      throw error;
    });
    return new Response(null, { status: 204, headers: { 'set-cookie': cookie(deps, token, SESSION_DAYS * 86_400) } });
  };
}

/** DELETE signs out. */
export const signOut =
  (deps: Deps): Handler =>
  async ({ request }) => {
    requireConsole(deps, request);
    const token = tokenIn(deps, request);
    if (token !== null) await endSession(deps, token);
    return new Response(null, { status: 204, headers: { 'set-cookie': cookie(deps, '', 0) } });
  };

/** The session of a request that the console's own pages made; null for every other request, whatever cookie it has. */
export const sessionOf = (deps: Deps, request: Request): string | null =>
  isFromConsole(deps, request) ? tokenIn(deps, request) : null;

function requireConsole(deps: Deps, request: Request): void {
  if (!isFromConsole(deps, request)) throw new ApiError(403, 'cross_site_request', 'Only the console may do this');
}

/** Beside SameSite=Strict: browsers say where a request comes from, and no other site can set the header. */
function isFromConsole({ config }: Deps, request: Request): boolean {
  const { headers, method } = request;
  const site = headers.get('sec-fetch-site');
  if (site !== null && site !== 'same-origin') return false;
  const origin = headers.get('origin');
  // Behind a proxy the Host may be another one than the browser's.
  const hosts = [headers.get('host') ?? new URL(request.url).host, new URL(config.PUBLIC_URL).host];
  if (origin !== null && !hosts.includes(URL.parse(origin)?.host ?? '')) return false;
  return method === 'GET' || method === 'HEAD' || headers.get(CONSOLE_HEADER) === CONSOLE_NAME;
}

const isSecure = ({ config }: Deps) => config.PUBLIC_URL.startsWith('https:');
/** `__Host-`: no other host of the domain, and nobody without TLS, can set it. */
const cookieName = (deps: Deps) => (isSecure(deps) ? '__Host-session' : 'session');

function tokenIn(deps: Deps, request: Request): string | null {
  const value = new Bun.CookieMap(request.headers.get('cookie') ?? '').get(cookieName(deps));
  return value && /^[\w-]{1,128}$/.test(value) ? value : null;
}

const cookie = (deps: Deps, token: string, maxAge: number) =>
  new Bun.Cookie(cookieName(deps), token, {
    path: '/',
    httpOnly: true,
    sameSite: 'strict',
    secure: isSecure(deps),
    maxAge,
  }).toString();
