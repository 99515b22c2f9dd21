/** An error that callers see: `detail` is the message, `code` is for programs, `context` adds further keys. */
export class ApiError extends Error {
  constructor(
    readonly status: 400 | 401 | 402 | 403 | 404 | 405 | 412 | 413 | 415 | 422 | 429 | 499 | 500,
    readonly code: string,
    message: string,
    readonly context: Record<string, unknown> = {},
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** One problem of a request, as an entry of HTTPValidationError. */
export interface ValidationIssue {
  loc: (string | number)[];
  msg: string;
  type: string;
}

/** 422: the request does not have the documented shape. */
export class RequestShapeError extends Error {
  constructor(readonly issues: ValidationIssue[]) {
    super('The request does not match the documented shape');
    this.name = 'RequestShapeError';
  }
}

/** 400: the request is well-formed but not possible in the current state. */
export const badRequest = (code: string, message: string, context: Record<string, unknown> = {}) =>
  new ApiError(400, code, message, context);

/** 404 for an unknown, deleted or foreign object, without saying which. @param what such as "Connection" */
export const notFound = (what: string) => new ApiError(404, 'not_found', `${what} not found`);

/** 403: the operator has suspended the account. */
export const accountSuspended = () =>
  new ApiError(403, 'account_suspended', 'This account is suspended. Ask the operator of the service');

/** 402: the billing plan does not allow it. */
export const paymentRequired = (code: string, message: string, context: Record<string, unknown> = {}) =>
  new ApiError(402, code, message, context);
