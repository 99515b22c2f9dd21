/** An error that a caller may hear: `detail` is this message, `code` is for programs, `context` stands beside them. */
export class ApiError extends Error {
  constructor(
    readonly status: 400 | 401 | 402 | 403 | 404 | 405 | 413 | 422 | 429 | 500,
    readonly code: string,
    message: string,
    readonly context: Record<string, unknown> = {},
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** One problem of a request, in the shape of HTTPValidationError. */
export interface ValidationIssue {
  loc: (string | number)[];
  msg: string;
  type: string;
}

/** 422: the request has not the documented shape. */
export class RequestShapeError extends Error {
  constructor(readonly issues: ValidationIssue[]) {
    super('The request has not the documented shape');
    this.name = 'RequestShapeError';
  }
}

/** 400: the request is well-formed but cannot be done as things stand. */
export const badRequest = (code: string, message: string, context: Record<string, unknown> = {}) =>
  new ApiError(400, code, message, context);

/** 404 for an unknown, deleted or foreign object: the three are not told apart. `what` as in "Connection". */
export const notFound = (what: string) => new ApiError(404, 'not_found', `${what} not found`);

/** 402: the plan does not allow it. */
export const paymentRequired = (code: string, message: string, context: Record<string, unknown> = {}) =>
  new ApiError(402, code, message, context);
