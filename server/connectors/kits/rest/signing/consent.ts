import { createHash } from 'node:crypto';
import type { ConnectorContext, ConsentRequest } from '../../../contract/connector.ts';
import { AuthenticationError, ConfigurationError } from '../../../contract/errors.ts';
import { networkError, serverMessage, statusError } from '../failures.ts';

const TIMEOUT_MS = 15_000;
const MAX_RESPONSE_LENGTH = 100_000;

export const unsupportedConsent = (message: string) => new ConfigurationError('consent_unsupported', message);

/** By RFC 7636, S256. */
export const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url');

/**
 * The provider's page with state and code challenge, unless the page has a challenge of its own. A browser opens it, so
 * other schemes than http and https are refused.
 */
export function consentPage(
  address: string,
  { state, code_verifier }: ConsentRequest,
  state_key = 'state',
): { url: string; isOwnChallenge: boolean } {
  const url = URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new ConfigurationError('invalid_address', 'The address of the consent page is not an http or https URL');
  }
  url.hash = '';
  url.searchParams.set(state_key, state);
  const isOwnChallenge = url.searchParams.has('code_challenge');
  if (!isOwnChallenge) {
    url.searchParams.set('code_challenge', challengeOf(code_verifier));
    url.searchParams.set('code_challenge_method', 'S256');
  }
  return { url: url.href, isOwnChallenge };
}

/** The response of a token endpoint to a code. A code works once, so nothing is retried. @throws ConnectorError */
export async function exchangeCode(
  { fetch, signal }: Pick<ConnectorContext<unknown>, 'fetch' | 'signal'>,
  request: { url: string; headers: Record<string, string>; body: string },
): Promise<Record<string, unknown>> {
  const url = URL.parse(request.url);
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new ConfigurationError('invalid_address', 'The token endpoint is not an http or https URL');
  }
  let response: Response;
  let text: string;
  try {
    response = await fetch(url.href, {
      method: 'POST',
      headers: { accept: 'application/json', ...request.headers },
      body: request.body,
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      redirect: 'manual',
    });
    text = await response.text();
  } catch (error) {
    throw networkError(error, url.host);
  }
  if (!response.ok) {
    const message = serverMessage(text, response.headers.get('content-type'));
    const refused = response.status === 400 || response.status === 401 || response.status === 403;
    throw statusError(refused ? 401 : response.status, { where: `The token endpoint ${url.host}`, message });
  }
  return tokensIn(text);
}

function tokensIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = text.length > MAX_RESPONSE_LENGTH ? null : JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Reported below.
  }
  throw new AuthenticationError('no_token', 'The response of the token endpoint is not a JSON object');
}
