import { setTimeout as sleep } from 'node:timers/promises';
import type { WebClient } from '@slack/web-api';
import type { ConnectorContext } from '../contract/connector.ts';
import {
  AuthenticationError,
  ConfigurationError,
  ConnectorError,
  RateLimitedError,
  RetryableError,
} from '../contract/errors.ts';

export interface SlackSettings {
  bot_token: string;
  api_url: string;
}

type Context = ConnectorContext<SlackSettings>;

// Loaded with its first use: processes start often, and most never need it.
const sdk = () => require('@slack/web-api') as typeof import('@slack/web-api');

/** A longer pause ends the call: the caller decides when to try again. */
const MAX_PAUSE_SECONDS = 10;
const TIMEOUT_MS = 15_000;

const silent = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  setLevel() {},
  setName() {},
  getLevel: () => sdk().LogLevel.ERROR,
};

/**
 * Calls a method of the Web API. Waits and retries once when Slack asks for a short pause.
 * @throws ConnectorError: AuthenticationError, ConfigurationError, RateLimitedError, RetryableError.
 */
export async function callSlack<Result>(ctx: Context, call: (client: WebClient) => Promise<Result>): Promise<Result> {
  const client = clientOf(ctx);
  try {
    return await call(client);
  } catch (error) {
    if (!(error instanceof sdk().WebAPIRateLimitedError) || error.retryAfter > MAX_PAUSE_SECONDS)
      throw translate(ctx, error);
    ctx.rateLimited(afterSeconds(ctx, error.retryAfter));
    await sleep(error.retryAfter * 1000, undefined, { signal: ctx.signal });
  }
  return call(client).catch((error: unknown) => {
    throw translate(ctx, error);
  });
}

function clientOf({ config, fetch, signal }: Context): WebClient {
  return new (sdk().WebClient)(config.bot_token, {
    slackApiUrl: config.api_url.endsWith('/') ? config.api_url : `${config.api_url}/`,
    allowAbsoluteUrls: false,
    // The guarded, recorded fetch, aborted by the signal.
    fetch: (url, init) =>
      fetch(url, { ...init, signal: init?.signal ? AbortSignal.any([signal, init.signal]) : signal }),
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    timeout: TIMEOUT_MS,
    logger: silent,
  });
}

const REVOKED = new Set([
  'invalid_auth',
  'not_authed',
  'account_inactive',
  'token_revoked',
  'token_expired',
  'no_permission',
  'missing_scope',
  'org_login_required',
  'ekm_access_denied',
]);
const TRANSIENT = new Set([
  'internal_error',
  'fatal_error',
  'service_unavailable',
  'request_timeout',
  'team_added_to_org',
]);
const MESSAGES: Record<string, string> = {
  channel_not_found: 'The channel does not exist in Slack',
  not_in_channel: 'The app is not in the channel. Invite it first.',
  is_archived: 'The channel is archived',
  missing_scope: 'The app lacks a required scope: chat:write, channels:read and groups:read',
  invalid_auth: 'Slack rejected the token',
  token_revoked: 'The token was revoked',
};

function translate(ctx: Context, error: unknown): unknown {
  if (error instanceof ConnectorError) return error;
  if (error instanceof sdk().WebAPIRateLimitedError) {
    return new RateLimitedError(afterSeconds(ctx, error.retryAfter), `Slack asks to wait for ${error.retryAfter} s`);
  }
  if (error instanceof sdk().WebAPIPlatformError) return platformError(error.data.error);
  if (error instanceof sdk().WebAPIHTTPError) {
    const message = `Slack returned status ${error.statusCode}`;
    if (error.statusCode === 401 || error.statusCode === 403) return new AuthenticationError('invalid_auth', message);
    return error.statusCode >= 500
      ? new RetryableError('http_error', message)
      : new ConfigurationError('http_error', message);
  }
  if (error instanceof sdk().WebAPIRequestError) {
    const { original } = error;
    if (original instanceof ConnectorError) return original;
    return new RetryableError('request_failed', `Slack is not reachable: ${original.message}`);
  }
  return error;
}

/** A server other than Slack may put a whole page where Slack has an error code. */
function platformError(given: string): ConnectorError {
  const code = /^[a-z0-9_]{1,60}$/.test(given) ? given : 'unexpected_answer';
  const message = MESSAGES[code] ?? `Slack returned the error ${code}`;
  if (REVOKED.has(code)) return new AuthenticationError(code, message);
  if (TRANSIENT.has(code)) return new RetryableError(code, message);
  return new ConfigurationError(code, message);
}

const afterSeconds = (ctx: Context, seconds: number) => new Date(ctx.now().getTime() + seconds * 1000);
