import type { ConnectorContext } from '../contract/connector.ts';
import { type Authentication, createSigner } from '../kits/rest/authentication.ts';
import { HttpClient } from '../kits/rest/client.ts';
import { HURRIED_SECONDS } from '../kits/rest/send.ts';
import { Pace, Shared, sharedKey } from '../kits/rest/rate-limiter.ts';
import type { HttpDestinationConfig } from './settings.ts';

const paces = new Shared<Pace>();
/** All streams of a run together. */
const CONCURRENCY = 4;
const MOST_ANSWER_BYTES = 16 * 1024 * 1024;
const PATIENT = { max_attempts: 6, max_wait_seconds: 600 };
const HURRIED = { max_attempts: 2, max_wait_seconds: 5 };

/** The address for a table. */
export const addressFor = ({ url }: HttpDestinationConfig, table: string) =>
  new URL(url.replaceAll(/\{\{\s*table\s*\}\}/g, () => encodeURIComponent(table)));

export function clientOf(ctx: ConnectorContext<HttpDestinationConfig>, options: { hurry: boolean }): HttpClient {
  const { config } = ctx;
  const { origin } = addressFor(config, 'table');
  const secrets = [config.token, config.api_key, config.password, config.client_secret, config.refresh_token];
  const limits = { requests_per_second: config.requests_per_second ?? null, concurrency: CONCURRENCY };
  return new HttpClient(ctx, {
    signer: createSigner(ctx, authenticationOf(config)),
    pace: paces.get(sharedKey(origin, limits, secrets), () => new Pace(limits)),
    secrets: secrets.filter((value) => value !== undefined),
    origins: new Set([origin]),
    ...(options.hurry ? HURRIED : PATIENT),
    base_seconds: 0.5,
    timeout_seconds: options.hurry ? Math.min(config.timeout_seconds, HURRIED_SECONDS) : config.timeout_seconds,
    max_bytes: MOST_ANSWER_BYTES,
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
