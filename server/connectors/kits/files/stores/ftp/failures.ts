import {
  AuthenticationError,
  ConfigurationError,
  ConnectorError,
  RetryableError,
  TimeoutError,
} from '../../../../contract/errors.ts';
import { networkError } from '../../../rest/failures.ts';

/** The server's reply to a command; null for errors that are no replies, such as a lost connection. */
export function replyOf(error: unknown): { code: number; text: string } | null {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'number') return null;
  return { code: error.code, text: error.message.replaceAll(/\s+/g, ' ').slice(0, 300).replace(/\.$/, '') };
}

const DENIED = /permission|denied|not permitted|not allowed/i;
const ABSENT = /no such|not found|does not exist/i;
const WANTS_TLS = /\b(tls|ssl|auth|encrypt\w*|secure)\b/i;
const NO_TLS = /wrong.version|EPROTO|unknown.protocol|ERR_SSL/i;

/** The error for a command that names a file or folder. */
export function commandError(error: unknown, { server, path }: { server: string; path: string }): ConnectorError {
  if (error instanceof ConnectorError) return error;
  const reply = replyOf(error);
  const options = { cause: error };
  if (!reply) return connectionError(error, server);
  const text = `"${path}" on ${server}: ${reply.text}`;
  if (reply.code === 530) return new AuthenticationError('ftp_login_refused', text, options);
  const isAbsent = ABSENT.test(reply.text);
  if (reply.code === 550 && !isAbsent && DENIED.test(reply.text)) {
    return new ConfigurationError('file_forbidden', text, options);
  }
  if (reply.code === 550 || (reply.code === 450 && isAbsent)) {
    return new ConfigurationError('file_not_found', text, options);
  }
  if (reply.code < 500) return new RetryableError('server_error', text, options);
  return new ConfigurationError('ftp_refused', text, options);
}

/** The error for a connection that was lost or stayed silent. */
function connectionError(error: unknown, server: string): ConnectorError {
  const { message } = error as Error;
  if (message.startsWith('Timeout')) return new TimeoutError('request_timeout', `${server} did not respond in time`);
  return networkError(error, server);
}

/** The step of a login that failed. */
export type LoginStep = 'greeting' | 'tls' | 'login';

/** The error for a login that did not succeed. */
export function loginError(
  error: unknown,
  { server, step, encrypted }: { server: string; step: LoginStep; encrypted: boolean },
): ConnectorError {
  if (error instanceof ConnectorError) return error;
  const reply = replyOf(error);
  const options = { cause: error };
  if (!reply) {
    const { code = '', message } = error as Error & { code?: string };
    const noTls = step === 'tls' && NO_TLS.test(`${code} ${message}`);
    return noTls ? tlsMissing(server, message, options) : connectionError(error, server);
  }
  if (reply.code === 421 || reply.code === 120) {
    return new RetryableError('server_error', `${server}: ${reply.text}`, options);
  }
  if (step === 'tls') return tlsMissing(server, reply.text, options);
  if (!encrypted && WANTS_TLS.test(reply.text)) {
    const text = `${server} requires TLS: ${reply.text}. Select explicit TLS as the encryption`;
    return new ConfigurationError('tls_required', text, options);
  }
  if (step === 'greeting') return new ConfigurationError('ftp_refused', `${server}: ${reply.text}`, options);
  const text = `${server} rejected the login: ${reply.text}. Check the username and password`;
  return new AuthenticationError('ftp_login_refused', text, options);
}

const tlsMissing = (server: string, message: string, options: ErrorOptions) =>
  new ConfigurationError(
    'tls_not_supported',
    `${server} does not offer TLS in this way: ${message}. Check the port and the encryption`,
    options,
  );
