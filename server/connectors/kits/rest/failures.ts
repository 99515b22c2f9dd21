import {
  AuthenticationError,
  ConfigurationError,
  ConnectorError,
  RetryableError,
  TimeoutError,
} from '../../contract/errors.ts';

const TRANSIENT = new Set([408, 425, 429]);
const MAX_MESSAGE_LENGTH = 300;
const MAX_REDACTED_LENGTH = 20_000;

/** A retry may succeed. */
export const isTransient = (status: number): boolean => TRANSIENT.has(status) || status >= 500;

/** The error for a status other than success. `message` is the service's own, secrets removed. */
export function statusError(status: number, place: { where: string; message: string }): ConnectorError {
  const text = `${place.where} returned ${status}${place.message ? `: ${place.message}` : ''}`;
  if (status === 401 || status === 403)
    return new AuthenticationError(status === 401 ? 'unauthorized' : 'forbidden', text);
  if (isTransient(status)) return new RetryableError(status === 429 ? 'rate_limited' : 'server_error', text);
  if (status === 404) return new ConfigurationError('not_found', text);
  return new ConfigurationError(status >= 300 && status < 400 ? 'redirected' : 'bad_request', text);
}

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)|ERR_TLS/;

/** The error for what `fetch` threw. */
export function networkError(error: unknown, host: string): ConnectorError {
  if (error instanceof ConnectorError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const text = error instanceof Error ? error.message : String(error);
  if (CERTIFICATE.test(code)) {
    return new ConfigurationError('certificate_invalid', `The certificate of ${host} is not trusted: ${text}`);
  }
  return new RetryableError('connection_failed', `${host} cannot be reached: ${text}`);
}

export const timeoutError = (host: string, seconds: number) =>
  new TimeoutError('request_timeout', `${host} did not respond within ${seconds} s`);

const unchanged = (text: string) => text;

/** The message in the body of an error response, or the beginning of the body; empty when there is nothing to show. */
export function serverMessage(body: string, contentType: string | null, redact = unchanged): string {
  const trimmed = body.trim();
  if (/^[[{]/.test(trimmed)) {
    try {
      const found = messageIn(JSON.parse(trimmed), 0);
      if (found) return shortened(found, redact);
    } catch {
      // Not JSON: the beginning of the text has to do.
    }
  }
  return contentType?.includes('html') || trimmed.startsWith('<') ? '' : shortened(trimmed, redact);
}

const NAMES = ['message', 'error_description', 'detail', 'title', 'error', 'errors', 'reason', 'description', '0'];

export function messageIn(value: unknown, depth: number): string | null {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null || depth > 4) return null;
  for (const name of NAMES) {
    const found = messageIn((value as Record<string, unknown>)[name], depth + 1);
    if (found) return found;
  }
  return null;
}

/** The beginning of a text on one line. Redacted before it is cut: half a secret is not recognized. */
export function shortened(text: string, redact: (text: string) => string): string {
  const line = redact(text.slice(0, MAX_REDACTED_LENGTH)).replaceAll(/\s+/g, ' ');
  return line.length > MAX_MESSAGE_LENGTH ? `${line.slice(0, MAX_MESSAGE_LENGTH)}…` : line;
}
