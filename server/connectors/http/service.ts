import type { ConnectorContext } from '../contract/connector.ts';
import { type Authentication, createSigner } from '../kits/rest/signing/authentication.ts';
import { HttpClient } from '../kits/rest/client.ts';
import { sharedLimiter } from '../kits/rest/rate-limiter.ts';
import { BACKGROUND, INTERACTIVE } from '../kits/rest/retry.ts';
import type { HttpDestinationConfig } from './settings.ts';

/** Of all streams of a run together. */
const CONCURRENCY = 4;
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

export const urlFor = ({ url }: HttpDestinationConfig, table: string) =>
  new URL(url.replaceAll(/\{\{\s*table\s*\}\}/g, () => encodeURIComponent(table)));

/** @param options.interactive for a check: fewer retries and a short timeout */
export function clientOf(ctx: ConnectorContext<HttpDestinationConfig>, options: { interactive: boolean }): HttpClient {
  const { config } = ctx;
  const { origin } = urlFor(config, 'table');
  const secrets = [config.token, config.api_key, config.password, config.client_secret, config.refresh_token];
  const limits = { requests_per_second: config.requests_per_second ?? null, concurrency: CONCURRENCY };
  return new HttpClient(ctx, {
    signer: createSigner(ctx, authenticationOf(config)),
    limiter: sharedLimiter(limits, origin, secrets),
    secrets,
    origins: new Set([origin]),
    ...(options.interactive ? INTERACTIVE : BACKGROUND),
    timeout_seconds: Math.min(config.timeout_seconds, options.interactive ? INTERACTIVE.timeout_seconds : Infinity),
    base_seconds: 0.5,
    max_bytes: MAX_RESPONSE_BYTES,
  });
}

function authenticationOf(config: HttpDestinationConfig): Authentication {
  const { token = '', api_key = '', username, password = '' } = config;
  switch (config.authentication) {
    case 'none':
      return { type: 'none' };
    case 'bearer':
      return { type: 'bearer', token };
    case 'api_key_header':
    case 'api_key_query':
      return {
        type: 'api_key',
        in: config.authentication === 'api_key_query' ? 'query' : 'header',
        name: config.key_name,
        value: api_key,
      };
    case 'basic':
      return { type: 'basic', username, password };
    default:
      return {
        type: config.authentication,
        token_url: config.oauth_address ?? '',
        client_id: config.client_id,
        client_secret: config.client_secret ?? '',
        refresh_token: config.refresh_token,
        scope: config.scope || undefined,
        credentials_in: 'body',
      };
  }
}
