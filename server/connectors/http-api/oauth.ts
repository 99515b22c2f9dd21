import type { ConnectorContext } from '../define.ts';
import { AuthenticationError, ConfigurationError, type ConnectorError } from '../errors.ts';
import type { Signer } from './authentication.ts';
import { networkError, serverMessage, statusError } from './failures.ts';
import { pause, Shared, sharedKey } from './pacing.ts';
import { backoff } from './waiting.ts';

export interface TokenEndpoint {
  type: 'oauth2_client_credentials' | 'oauth2_refresh_token';
  token_url: string;
  client_id: string;
  client_secret: string;
  refresh_token?: string;
  scope?: string;
  credentials_in: 'body' | 'basic_header';
}

type Context = Pick<ConnectorContext<unknown>, 'fetch' | 'signal' | 'warn'>;

export const basicHeader = (username: string, password: string) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

interface Token {
  value: string;
  /** By performance.now(). */
  expires: number;
}

/** A token of one client, fetched once for all that ask at the same time. */
class TokenSource {
  #token: Token | null = null;
  #pending: Promise<Token> | null = null;
  /** Services may hand out a new refresh token with each access token; the old one is then worth nothing. */
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

export function tokenSigner(ctx: Context, oauth: TokenEndpoint): Signer {
  const source = sources.get(sharedKey(oauth), () => new TokenSource());
  const fetchToken = () => requestToken(ctx, oauth, source);
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
    sign: (call, token) => ({ url: call.url, headers: { ...call.headers, authorization: `Bearer ${token}` } }),
    renew(refused) {
      if (refused !== null) source.forget(refused);
      return true;
    },
  };
}

const isAbort = (error: unknown) => !(error instanceof Error && 'retryable' in error);

async function requestToken(ctx: Context, oauth: TokenEndpoint, source: TokenSource): Promise<Token> {
  for (let attempt = 1; ; attempt += 1) {
    const { token, error } = await tryToken(ctx, oauth, source);
    if (token) return token;
    if (!error.retryable || attempt >= ATTEMPTS) throw error;
    await pause(backoff(attempt, 0.5), ctx.signal);
  }
}

type Tried = { token: Token; error: null } | { token: null; error: ConnectorError };

async function tryToken(ctx: Context, oauth: TokenEndpoint, source: TokenSource): Promise<Tried> {
  const url = URL.parse(oauth.token_url);
  if (!url) throw new ConfigurationError('invalid_address', 'The address of the token endpoint is none');
  const used = source.refresh_token ?? oauth.refresh_token ?? '';
  const form = new URLSearchParams({ grant_type: 'client_credentials' });
  if (oauth.type === 'oauth2_refresh_token') {
    form.set('grant_type', 'refresh_token');
    form.set('refresh_token', used);
  }
  if (oauth.scope) form.set('scope', oauth.scope);
  const headers: Record<string, string> = {
    accept: 'application/json',
    'content-type': 'application/x-www-form-urlencoded',
  };
  if (oauth.credentials_in === 'basic_header')
    headers.authorization = basicHeader(oauth.client_id, oauth.client_secret);
  else {
    form.set('client_id', oauth.client_id);
    form.set('client_secret', oauth.client_secret);
  }
  const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(TOKEN_TIMEOUT_MS)]);
  try {
    const init = { method: 'POST', headers, body: form.toString(), signal, redirect: 'manual' as const };
    const response = await ctx.fetch(url.href, init);
    const text = await response.text();
    if (response.ok) return { token: tokenOf(ctx, text, { source, used }), error: null };
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

function tokenOf(ctx: Context, text: string, { source, used }: { source: TokenSource; used: string }): Token {
  let answer: Record<string, unknown> = {};
  try {
    answer = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // Said below: there is no token in it.
  }
  const { access_token, expires_in, refresh_token } = answer ?? {};
  if (typeof access_token !== 'string' || access_token === '') {
    throw new AuthenticationError('no_token', 'The token endpoint answered without an access token');
  }
  const rotated = typeof refresh_token === 'string' && refresh_token !== '' && refresh_token !== used;
  if (rotated) {
    source.refresh_token = refresh_token;
    ctx.warn(
      'refresh_token_rotated',
      'The service replaces its refresh tokens: the one in the settings may be used up',
    );
  }
  const life = Number(expires_in) > 0 ? Number(expires_in) : LIFE_SECONDS;
  const early = Math.min(EARLY_SECONDS, life / 2);
  return { value: access_token, expires: performance.now() + (life - early) * 1000 };
}
