import type { Logger } from 'pino';
import type { AuditedCall } from '../api/audit/record.ts';
import { describeError } from '../api/error-response.ts';
import type { HttpExchange } from './exchange.ts';

/** The REST response to an error. Details that callers must not see go to the log. */
export function errorResponse(error: unknown, { log, request_id }: { log: Logger; request_id: string }): Response {
  const { status, body, headers, cause } = describeError(error, request_id);
  if (cause !== undefined) log.error({ err: cause, request_id }, 'request failed');
  // HTTPValidationError is `detail` alone.
  return Response.json(status === 422 ? { detail: body.detail } : body, { status, headers });
}

/** A request without a known caller in the form of the audit log. Procedures record their calls themselves, by name. */
export const unauthenticatedCall = (
  { request, request_id, address }: Pick<HttpExchange, 'request' | 'request_id' | 'address'>,
  route: string,
): AuditedCall => ({
  caller: { request_id, address: address(), user_agent: request.headers.get('user-agent') },
  principal: null,
  action: `${request.method} ${route}`,
});
