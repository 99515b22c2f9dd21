import { ApiError, RequestShapeError } from '../platform/errors.ts';

/** An error in the form that callers receive, over REST and tRPC. */
export interface ErrorResponse {
  status: number;
  /** The REST body. `detail` is a sentence, the list of issues of a 422, or an object where documented. */
  body: { detail: unknown; code: string } & Record<string, unknown>;
  headers: Record<string, string>;
  /** For the log only. Absent when the response contains everything. */
  cause?: unknown;
}

const CHALLENGE = { 'www-authenticate': 'Bearer error="invalid_token"' };

/** Errors raised by tRPC itself, by code. */
const OF_TRPC: Record<string, [status: number, code: string, detail: string]> = {
  PARSE_ERROR: [400, 'malformed_request', 'The request cannot be read'],
  BAD_REQUEST: [400, 'malformed_request', 'The request cannot be read'],
  NOT_FOUND: [404, 'not_found', 'Not Found'],
  METHOD_NOT_SUPPORTED: [405, 'method_not_allowed', 'Method Not Allowed'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'unsupported_media_type', 'Unsupported Media Type'],
  PAYLOAD_TOO_LARGE: [413, 'body_too_large', 'The request body is too large'],
  CLIENT_CLOSED_REQUEST: [499, 'client_closed_request', 'The client closed the connection'],
};

/** Maps every thrown error to its response. Unknown errors become 500, without details of the cause. */
export function describeError(error: unknown, requestId: string): ErrorResponse {
  for (const candidate of causes(error)) {
    if (candidate instanceof RequestShapeError) {
      return { status: 422, body: { detail: candidate.issues, code: 'validation_error' }, headers: {} };
    }
    if (candidate instanceof ApiError) return describeApiError(candidate);
  }
  const own = OF_TRPC[trpcCode(error)];
  if (own) return { status: own[0], body: { detail: own[2], code: own[1] }, headers: {} };
  return {
    status: 500,
    body: { detail: 'Internal server error', code: 'internal_error', request_id: requestId },
    headers: {},
    cause: error instanceof Error && error.cause !== undefined ? error.cause : error,
  };
}

/** The ApiError that an error is or wraps. */
export const apiErrorIn = (error: unknown): ApiError | undefined =>
  [...causes(error)].find((candidate): candidate is ApiError => candidate instanceof ApiError);

function describeApiError(error: ApiError): ErrorResponse {
  const { retry_after_seconds } = error.context;
  return {
    status: error.status,
    body: { detail: error.message, code: error.code, ...error.context },
    headers: {
      ...(error.status === 401 && CHALLENGE),
      ...(typeof retry_after_seconds === 'number' && { 'retry-after': String(retry_after_seconds) }),
    },
  };
}

function* causes(error: unknown): Generator {
  for (let depth = 0; error !== undefined && depth < 5; depth++) {
    yield error;
    error = error instanceof Error ? error.cause : undefined;
  }
}

/** Only for errors without a cause: the code of an error that wraps another one is meaningless. */
function trpcCode(error: unknown): string {
  if (!(error instanceof Error) || error.name !== 'TRPCError' || !('code' in error)) return '';
  const own = error.cause === undefined || error.cause instanceof SyntaxError;
  return own ? String(error.code) : '';
}
