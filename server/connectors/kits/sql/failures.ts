import { ConfigurationError, type ConnectorError, RetryableError, TimeoutError } from '../../contract/errors.ts';

/** What is known about the place of an error; decides how much of it may pass by itself. */
export interface FailurePlace {
  /** `host:port`, for messages. */
  server: string;
  /** In a run the settings were right before, so a server that refuses is one that restarts; in a set-up they are wrong. */
  phase: 'setup' | 'run';
}

export const placeOf = (
  { host, port }: { host: string; port: number },
  phase: FailurePlace['phase'],
): FailurePlace => ({
  server: `${host}:${port}`,
  phase,
});

/** What becomes of an error whose message is known. */
export type Make = (message: string) => ConnectorError;

export const as =
  (type: new (code: string, message: string) => ConnectorError, code: string): Make =>
  (message) =>
    new type(code, message);

/** By error code of the operating system or the resolver. The second one holds in a run. */
const BY_SOCKET: Record<string, [Make, Make?]> = {
  ENOTFOUND: [as(ConfigurationError, 'host_not_found')],
  EAI_AGAIN: [as(ConfigurationError, 'host_not_found'), as(RetryableError, 'host_not_found')],
  ECONNREFUSED: [as(ConfigurationError, 'connection_refused'), as(RetryableError, 'connection_refused')],
  EHOSTUNREACH: [as(ConfigurationError, 'host_unreachable'), as(RetryableError, 'host_unreachable')],
  ENETUNREACH: [as(ConfigurationError, 'host_unreachable'), as(RetryableError, 'host_unreachable')],
};

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME|ERR_TLS|ERR_SSL|HANDSHAKE_SSL_ERROR/i;

/** Why a server is not reached or not trusted, as far as every driver tells it alike; null: it is something else. */
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
  new ConfigurationError('tls_not_supported', `${server} does not offer TLS, which ssl_mode asks for`);
