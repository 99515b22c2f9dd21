import { ConfigurationError, type ConnectorError, TimeoutError } from '../../../../contract/errors.ts';
import { networkError } from '../../../rest/failures.ts';

/** The error for a server that no connection could be opened to. */
export function reachError(error: unknown, { host, port }: { host: string; port: number }): ConnectorError {
  const { code } = error as Error & { code?: string };
  if (code === 'ENOTFOUND') return new ConfigurationError('host_not_found', `Host ${host} not found`);
  if (code === 'ETIMEDOUT') return new TimeoutError('connection_timeout', `${host}:${port} did not answer in time`);
  return networkError(error, `${host}:${port}`);
}
