import type { ConnectorContext, StoredSecret } from '../../contract/connector.ts';
import { AuthenticationError, ConfigurationError, type ConnectorError } from '../../contract/errors.ts';
import type { Signer } from './authentication.ts';
import { networkError, serverMessage, statusError } from './failures.ts';
import { pause, Shared, sharedKey } from './rate-limiter.ts';
import { backoff } from './retry-after.ts';

export interface TokenEndpoint {
  type: 'oauth2_client_credentials' | 'oauth2_refresh_token';
  token_url: string;
  client_id: string;
  client_secret: string;
  refresh_token?: string;
  scope?: string;
  credentials_in: 'body' | 'basic_header';
}

/** How one way of OAuth 2 asks for a token. */
export interface TokenFlow {
  /** Tells clients and credentials apart. */
  key: string;
  url: string;
  /** The refresh token of the settings; null for ways without one. */
  refresh_token: string | null;
  /** The request, made with the refresh token in force. */
  request(refresh_token: string | null): { headers: Record<string, string>; body: string };
  /** What the answer calls its parts. */
  names: { access_token: string; expires_in: string; refresh_token: string };
  /** The header that the token goes into. */
  sign(token: string): Record<string, string>;
}

type Context = Pick<ConnectorContext<unknown>, 'fetch' | 'signal' | 'warn' | 'rotateSecret'>;
export type TokenContext = Context;

export const basicHeader = (username: string, password: string) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

export interface Token {
  value: string;
  /** By performance.now(). */
  expires: number;
}

/** A token of one client, fetched once for all that ask at the same time. */
export class TokenSource {
  #token: Token | null = null;
  #pending: Promise<Token> | null = null;
  /** A refresh token that took the place of the one in the settings, and could not be stored there. */
  refresh_token: string | null = null;

  async get(fetchToken: () => Promise<Token>): Promise<string> {
    if (this.#token && this.#token.expires > performance.now()) return this.#token.value;
    this.#pending ??= fetchToken().finally(() => {
      this.#pending = null;
    });
    this.#token = await this.#pending;
    return this.#token.value;
  }

  forget(value: string): void {
    if (this.#token?.value === value) this.#token = null;
  }
}

const sources = new Shared<TokenSource>();
/** A token is renewed so long before its end, or at half its life if that is shorter. */
const EARLY_SECONDS = 60;
const LIFE_SECONDS = 3600;
const TOKEN_TIMEOUT_MS = 30_000;
const ATTEMPTS = 4;

export const tokenSigner = (ctx: Context, oauth: TokenEndpoint): Signer => flowSigner(ctx, endpointFlow(oauth));

/** Signs with a token that all who bring the same credentials share. */
export function flowSigner(ctx: Context, flow: TokenFlow): Signer {
  const source = sources.get(flow.key, () => new TokenSource());
  const given = flow.refresh_token;
  const fetchToken = async () =>
    given !== null && ctx.rotateSecret
      ? await ctx.rotateSecret(given, (stored) => requestToken(ctx, flow, { source, stored }))
      : await requestToken(ctx, flow, { source, stored: NOT_STORED });
  return {
    async current() {
      try {
        return await source.get(fetchToken);
      } catch (error) {
        // Somebody else's read was stopped while it fetched the token for both.
        if (ctx.signal.aborted || !isAbort(error)) throw error;
        return source.get(fetchToken);
      }
    },
    sign: (call, token) => ({ url: call.url, headers: { ...call.headers, ...flow.sign(token ?? '') } }),
    renew(refused) {
      if (refused !== null) source.forget(refused);
      return true;
    },
  };
}

function endpointFlow(oauth: TokenEndpoint): TokenFlow {
  const refreshes = oauth.type === 'oauth2_refresh_token';
  const inHeader = oauth.credentials_in === 'basic_header';
  const { client_id, client_secret } = oauth;
  return {
    key: sharedKey(oauth),
    url: oauth.token_url,
    refresh_token: refreshes ? (oauth.refresh_token ?? '') : null,
    request: (refresh_token) => ({
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        ...(inHeader && { authorization: basicHeader(client_id, client_secret) }),
      },
      body: new URLSearchParams({
        grant_type: refreshes ? 'refresh_token' : 'client_credentials',
        ...(refresh_token !== null && { refresh_token }),
        ...(oauth.scope && { scope: oauth.scope }),
        ...(!inHeader && { client_id, client_secret }),
      }).toString(),
    }),
    names: { access_token: 'access_token', expires_in: 'expires_in', refresh_token: 'refresh_token' },
    sign: (token) => ({ authorization: `Bearer ${token}` }),
  };
}

const isAbort = (error: unknown) => !(error instanceof Error && 'retryable' in error);

const NOT_STORED: StoredSecret = { current: null, replace: async () => false };

interface Asking {
  source: TokenSource;
  stored: StoredSecret;
}

async function requestToken(ctx: Context, flow: TokenFlow, asking: Asking): Promise<Token> {
  for (let attempt = 1; ; attempt += 1) {
    const { token, error } = await tryToken(ctx, flow, asking);
    if (token) return token;
    if (!error.retryable || attempt >= ATTEMPTS) throw error;
    await pause(backoff(attempt, 0.5), ctx.signal);
  }
}

type Tried = { token: Token; error: null } | { token: null; error: ConnectorError };

async function tryToken(ctx: Context, flow: TokenFlow, asking: Asking): Promise<Tried> {
  const url = URL.parse(flow.url);
  if (!url) throw new ConfigurationError('invalid_address', 'The address of the token endpoint is none');
  const known = asking.source.refresh_token ?? asking.stored.current;
  const used = flow.refresh_token === null ? null : (known ?? flow.refresh_token);
  const { headers, body } = flow.request(used);
  const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(TOKEN_TIMEOUT_MS)]);
  try {
    const init = { method: 'POST', headers: { accept: 'application/json', ...headers }, body, signal };
    const response = await ctx.fetch(url.href, { ...init, redirect: 'manual' });
    const text = await response.text();
    if (response.ok) return { token: await takeToken(ctx, text, { ...asking, flow, used }), error: null };
    const place = {
      where: `The token endpoint ${url.host}`,
      message: serverMessage(text, response.headers.get('content-type')),
    };
    // A wrong client or an expired grant is 400 here.
    const refused = response.status === 400 || response.status === 401 || response.status === 403;
    return { token: null, error: statusError(refused ? 401 : response.status, place) };
  } catch (error) {
    if (ctx.signal.aborted) throw ctx.signal.reason;
    return { token: null, error: networkError(error, url.host) };
  }
}

interface Taking extends Asking {
  flow: TokenFlow;
  used: string | null;
}

async function takeToken(ctx: Context, text: string, { flow, used, ...asking }: Taking): Promise<Token> {
  let answer: Record<string, unknown> = {};
  try {
    answer = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // Said below: there is no token in it.
  }
  const { names } = flow;
  const token = answer?.[names.access_token];
  if (typeof token !== 'string' || token === '') {
    throw new AuthenticationError('no_token', 'The token endpoint answered without an access token');
  }
  const next = answer[names.refresh_token];
  if (used !== null && typeof next === 'string' && next !== '' && next !== used) {
    await keepRotated(ctx, { used, next }, asking);
  }
  const life = Number(answer[names.expires_in]) > 0 ? Number(answer[names.expires_in]) : LIFE_SECONDS;
  const early = Math.min(EARLY_SECONDS, life / 2);
  return { value: token, expires: performance.now() + (life - early) * 1000 };
}

/** The old refresh token is worth nothing any more: the new one takes its place in the settings. */
async function keepRotated(
  ctx: Context,
  { used, next }: { used: string; next: string },
  { source, stored }: Asking,
): Promise<void> {
  // Known even if this process is stopped while it stores it.
  source.refresh_token = next;
  if (await stored.replace(used, next).catch(() => false)) {
    source.refresh_token = null;
    return;
  }
  ctx.warn(
    'refresh_token_rotated',
    'The service replaces its refresh tokens, and the new one could not be stored: the one in the settings may be used up',
  );
}
