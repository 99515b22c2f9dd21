import {
  AuthenticationError,
  ConfigurationError,
  ConnectorError,
  RetryableError,
  TimeoutError,
} from '../../contract/errors.ts';

const PASSING = new Set([408, 425, 429]);
const LONGEST_MESSAGE = 300;

export const isPassing = (status: number): boolean => PASSING.has(status) || status >= 500;

/** What a status that is no success means. `message` is the service's own, secrets taken out. */
export function statusError(status: number, place: { where: string; message: string }): ConnectorError {
  const said = place.message ? `: ${place.message}` : '';
  const text = `${place.where} answered ${status}${said}`;
  if (status === 401 || status === 403)
    return new AuthenticationError(status === 401 ? 'unauthorized' : 'forbidden', text);
  if (isPassing(status)) return new RetryableError(status === 429 ? 'rate_limited' : 'server_error', text);
  if (status === 404) return new ConfigurationError('not_found', text);
  return new ConfigurationError(status >= 300 && status < 400 ? 'redirected' : 'bad_request', text);
}

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)|ERR_TLS/;

/** What fetch threw. */
export function networkError(error: unknown, host: string): ConnectorError {
  if (error instanceof ConnectorError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const text = error instanceof Error ? error.message : String(error);
  if (CERTIFICATE.test(code)) {
    return new ConfigurationError('certificate_invalid', `The certificate of ${host} cannot be trusted: ${text}`);
  }
  return new RetryableError('connection_failed', `${host} cannot be reached: ${text}`);
}

export const timeoutError = (host: string, seconds: number) =>
  new TimeoutError('request_timeout', `${host} did not answer within ${seconds} s`);

/** The sentence that an error's body holds, or its beginning; empty when there is nothing to show. */
export function serverMessage(body: string, contentType: string | null): string {
  const trimmed = body.trim();
  if (/^[[{]/.test(trimmed)) {
    try {
      const found = sentenceIn(JSON.parse(trimmed), 0);
      if (found) return shortened(found);
    } catch {
      // Not JSON after all: its beginning will do.
    }
  }
  return contentType?.includes('html') || trimmed.startsWith('<') ? '' : shortened(trimmed);
}

const NAMES = ['message', 'error_description', 'detail', 'title', 'error', 'errors', 'reason', 'description', '0'];

function sentenceIn(value: unknown, depth: number): string | null {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null || depth > 4) return null;
  for (const name of NAMES) {
    const found = sentenceIn((value as Record<string, unknown>)[name], depth + 1);
    if (found) return found;
  }
  return null;
}

const shortened = (text: string) => {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > LONGEST_MESSAGE ? `${line.slice(0, LONGEST_MESSAGE)}…` : line;
};
