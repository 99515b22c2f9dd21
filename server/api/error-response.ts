import { ApiError, RequestShapeError } from '../platform/errors.ts';

/** What a caller hears of an error, on either face. */
export interface Answer {
  status: number;
  /** The REST body. `detail` is a sentence, the list of problems of a 422, or an object where the interface says so. */
  body: { detail: unknown; code: string } & Record<string, unknown>;
  headers: Record<string, string>;
  /** What only the log may know; absent when the caller heard everything. */
  cause?: unknown;
}

const CHALLENGE = { 'www-authenticate': 'Bearer error="invalid_token"' };

/** The errors that tRPC itself raises, by its code. */
const OF_TRPC: Record<string, [status: number, code: string, detail: string]> = {
  PARSE_ERROR: [400, 'malformed_request', 'The request cannot be read'],
  BAD_REQUEST: [400, 'malformed_request', 'The request cannot be read'],
  NOT_FOUND: [404, 'not_found', 'Not Found'],
  METHOD_NOT_SUPPORTED: [405, 'method_not_allowed', 'Method Not Allowed'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'unsupported_media_type', 'Unsupported Media Type'],
  PAYLOAD_TOO_LARGE: [413, 'body_too_large', 'The request body is too large'],
  CLIENT_CLOSED_REQUEST: [499, 'client_closed_request', 'The client went away'],
};

/** The one mapping of what was thrown to what is told. Unknown errors become 500 without a word about their cause. */
export function describeError(error: unknown, requestId: string): Answer {
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

function describeApiError(error: ApiError): Answer {
  return {
    status: error.status,
    body: { detail: error.message, code: error.code, ...error.context },
    headers: error.status === 401 ? CHALLENGE : {},
  };
}

function* causes(error: unknown): Generator {
  for (let depth = 0; error !== undefined && depth < 5; depth++) {
    yield error;
    error = error instanceof Error ? error.cause : undefined;
  }
}

/** Only of an error without a cause: what wraps another error tells nothing of its kind. */
function trpcCode(error: unknown): string {
  if (!(error instanceof Error) || error.name !== 'TRPCError' || !('code' in error)) return '';
  const own = error.cause === undefined || error.cause instanceof SyntaxError;
  return own ? String(error.code) : '';
}
