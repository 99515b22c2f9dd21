import { ConfigurationError, type ConnectorError, RetryableError, TimeoutError } from '../../contract/errors.ts';

/** Where an error occurred. Decides whether it may be temporary. */
export interface FailurePlace {
  /** `host:port`, for messages. */
  server: string;
  /** In a run, the settings worked before, so a refused connection may be a restart. During setup, they are wrong. */
  phase: 'setup' | 'run';
}

export const placeOf = (
  { host, port }: { host: string; port: number },
  phase: FailurePlace['phase'],
): FailurePlace => ({
  server: `${host}:${port}`,
  phase,
});

/** Creates the error for a message. */
export type ToError = (message: string) => ConnectorError;

export const as =
  (type: new (code: string, message: string) => ConnectorError, code: string): ToError =>
  (message) =>
    new type(code, message);

/** By error code of the operating system or the resolver: during setup, and in a run if that differs. */
const BY_SOCKET: Record<string, [ToError, ToError?]> = {
  ENOTFOUND: [as(ConfigurationError, 'host_not_found')],
  EAI_AGAIN: [as(ConfigurationError, 'host_not_found'), as(RetryableError, 'host_not_found')],
  ECONNREFUSED: [as(ConfigurationError, 'connection_refused'), as(RetryableError, 'connection_refused')],
  EHOSTUNREACH: [as(ConfigurationError, 'host_unreachable'), as(RetryableError, 'host_unreachable')],
  ENETUNREACH: [as(ConfigurationError, 'host_unreachable'), as(RetryableError, 'host_unreachable')],
};

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME|ERR_TLS|ERR_SSL|HANDSHAKE_SSL_ERROR/i;

/** Why a server is unreachable or not trusted, for errors that all drivers share; null for other errors. */
export function reachFailure(error: Error & { code?: string }, { server, phase }: FailurePlace): ConnectorError | null {
  const code = error.code ?? '';
  const [inSetup, inRun] = BY_SOCKET[code] ?? [];
  if (inSetup) return (phase === 'run' && inRun ? inRun : inSetup)(`Cannot reach ${server}: ${error.message}`);
  if (code === 'ETIMEDOUT') return new TimeoutError('connection_timeout', `${server} did not answer in time`);
  if (CERTIFICATE.test(code) || /certificate/i.test(error.message)) {
    const message = `The certificate of ${server} is not trusted: ${error.message}`;
    return new ConfigurationError('certificate_invalid', message);
  }
  return null;
}

export const tlsMissing = ({ server }: FailurePlace): ConnectorError =>
  new ConfigurationError('tls_not_supported', `${server} does not support TLS, which ssl_mode requires`);
