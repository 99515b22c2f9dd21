import { ConnectorError } from '../connectors/contract/errors.ts';
import { badRequest } from '../platform/errors.ts';

const CODES: Partial<Record<ConnectorError['type'], string>> = {
  auth_error: 'upstream_auth_failed',
  timeout: 'upstream_timeout',
};

/**
 * What a call of a connector throws, as an answer: 400 `upstream_auth_failed`, `upstream_timeout` or `upstream_error`.
 * Any other error stays as it is.
 */
export const asUpstreamError = (error: unknown): unknown =>
  error instanceof ConnectorError
    ? badRequest(CODES[error.type] ?? 'upstream_error', error.message, { upstream_code: error.code })
    : error;
