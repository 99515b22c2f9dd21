import type { Logger } from 'pino';
import { describeError } from '../api/error-response.ts';

/** The REST response to an error. Details that callers must not see go to the log. */
export function errorResponse(error: unknown, { log, request_id }: { log: Logger; request_id: string }): Response {
  const { status, body, headers, cause } = describeError(error, request_id);
  if (cause !== undefined) log.error({ err: cause, request_id }, 'request failed');
  // HTTPValidationError is `detail` alone.
  return Response.json(status === 422 ? { detail: body.detail } : body, { status, headers });
}
