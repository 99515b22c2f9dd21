import type { StoredRunError } from '../../../db/schema/index.ts';
import type { ConnectorError } from '../../connectors/contract/errors.ts';

/** An error of what the streams of a run share, as the run stores it. */
export const storedError = (
  { code, message, type, retryable }: ConnectorError,
  origin: 'source' | 'destination',
): StoredRunError => ({
  code,
  message,
  origin,
  type,
  retryable,
  stream_name: null,
  internal_message: null,
  occurred_at: new Date().toISOString(),
});
