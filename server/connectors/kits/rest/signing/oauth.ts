import type { ConnectorContext, StoredSecret } from '../../../contract/connector.ts';
import { AuthenticationError, ConfigurationError, type ConnectorError } from '../../../contract/errors.ts';
import { networkError, serverMessage, statusError } from '../failures.ts';
import { pause, Shared, sharedKey } from '../rate-limiter.ts';
import { backoff } from '../retry-after.ts';
import type { Signer } from './signer.ts';

export interface TokenEndpoint {
  type: 'oauth2_client_credentials' | 'oauth2_refresh_token';
  token_url: string;
  client_id: string;
  client_secret: string;
  refresh_token?: string;
  scope?: string;
  credentials_in: 'body' | 'basic_header';
}

/** How one kind of OAuth 2 grant requests a token. */
export interface TokenFlow {
  /** Identifies the client and its credentials. */
  key: string;
  url: string;
  /** The refresh token from the settings; null for grants without one. */
  refresh_token: string | null;
  /** @param refresh_token the current one, which may have replaced that of the settings */
  request(refresh_token: string | null): { headers: Record<string, string>; body: string };
  /** Names of the properties of the token response. */
  names: { access_token: string; expires_in: string; refresh_token: string };
  /** The header that carries the token. */
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

/** The token of one client. Concurrent callers share one request for it. */
export class TokenSource {
  #token: Token | null = null;
  #pending: Promise<Token> | null = null;
  /** A rotated refresh token that could not be stored in the settings. */
  refresh_token: string | null = null;

  async get(fetchToken: () => Promise<Token>): Promise<string> {
    if (this.#token && this.#token.expires > performance.now()) return this.#token.value;
    this.#pending ??= fetchToken().finally(() => {
      this.#pending = null;
    });
    this.#token = await this.#pending;
    return this.#token.value;
  }

  /** Discards a refused token, so that the next `get` fetches one. */
  forget(refused: string | null): true {
    if (refused !== null && this.#token?.value === refused) this.#token = null;
    return true;
  }
}

const sources = new Shared<TokenSource>();
/** A token is renewed this long before it expires, or at half its lifetime if that is shorter. */
const RENEW_EARLY_SECONDS = 60;
const DEFAULT_LIFETIME_SECONDS = 3600;
const TOKEN_TIMEOUT_MS = 30_000;
const MAX_ATTEMPTS = 4;

export const tokenSigner = (ctx: Context, oauth: TokenEndpoint): Signer => flowSigner(ctx, endpointFlow(oauth));

/** Signs with a token that is shared by all readers with the same credentials. */
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
        // Another read fetched the token for both and was stopped.
        if (ctx.signal.aborted || !isAbort(error)) throw error;
        return source.get(fetchToken);
      }
    },
    sign: ({ url, headers }, token) => ({ url, headers: { ...headers, ...flow.sign(token ?? '') } }),
    renew: (refused) => source.forget(refused),
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

interface Renewal {
  source: TokenSource;
  stored: StoredSecret;
}

async function requestToken(ctx: Context, flow: TokenFlow, renewal: Renewal): Promise<Token> {
  for (let attempt = 1; ; attempt += 1) {
    const { token, error } = await tryToken(ctx, flow, renewal);
    if (token) return token;
    if (!error.retryable || attempt >= MAX_ATTEMPTS) throw error;
    await pause(backoff(attempt, 0.5), ctx.signal);
  }
}

type Tried = { token: Token; error: null } | { token: null; error: ConnectorError };

async function tryToken(ctx: Context, flow: TokenFlow, renewal: Renewal): Promise<Tried> {
  const url = URL.parse(flow.url);
  if (!url) throw new ConfigurationError('invalid_address', 'The token endpoint is not a valid URL');
  const known = renewal.source.refresh_token ?? renewal.stored.current;
  const used = flow.refresh_token === null ? null : (known ?? flow.refresh_token);
  const { headers, body } = flow.request(used);
  const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(TOKEN_TIMEOUT_MS)]);
  try {
    const init = { method: 'POST', headers: { accept: 'application/json', ...headers }, body, signal };
    const response = await ctx.fetch(url.href, { ...init, redirect: 'manual' });
    const text = await response.text();
    if (response.ok) return { token: await tokenFrom(ctx, text, { ...renewal, flow, used }), error: null };
    const place = {
      where: `The token endpoint ${url.host}`,
      message: serverMessage(text, response.headers.get('content-type')),
    };
    // RFC 6749: a wrong client or an expired grant is a 400.
    const refused = response.status === 400 || response.status === 401 || response.status === 403;
    return { token: null, error: statusError(refused ? 401 : response.status, place) };
  } catch (error) {
    if (ctx.signal.aborted) throw ctx.signal.reason;
    return { token: null, error: networkError(error, url.host) };
  }
}

interface TokenRequest extends Renewal {
  flow: TokenFlow;
  used: string | null;
}

async function tokenFrom(ctx: Context, text: string, { flow, used, ...renewal }: TokenRequest): Promise<Token> {
  let response: Record<string, unknown> = {};
  try {
    response = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // Reported below: no token in it.
  }
  const { names } = flow;
  const token = response?.[names.access_token];
  if (typeof token !== 'string' || token === '') {
    throw new AuthenticationError('no_token', 'The response of the token endpoint contains no access token');
  }
  const next = response[names.refresh_token];
  if (used !== null && typeof next === 'string' && next !== '' && next !== used) {
    await keepRotated(ctx, { used, next }, renewal);
  }
  const expires_in = Number(response[names.expires_in]);
  const lifetime = expires_in > 0 ? expires_in : DEFAULT_LIFETIME_SECONDS;
  const early = Math.min(RENEW_EARLY_SECONDS, lifetime / 2);
  return { value: token, expires: performance.now() + (lifetime - early) * 1000 };
}

/** The service has invalidated the old refresh token: the new one replaces it in the settings. */
async function keepRotated(
  ctx: Context,
  { used, next }: { used: string; next: string },
  { source, stored }: Renewal,
): Promise<void> {
  // Kept in case this process is stopped while it stores the token.
  source.refresh_token = next;
  if (await stored.replace(used, next).catch(() => false)) {
    source.refresh_token = null;
    return;
  }
  ctx.warn(
    'refresh_token_rotated',
    'The service rotated the refresh token, and the new one could not be stored. If the next run cannot sign in, enter a new refresh token.',
  );
}
