import { TRPCClientError, type TRPCLink } from '@trpc/client';
import { observable } from '@trpc/server/observable';
import type { AppRouter } from '../server/router.ts';
import { UnreadableAnswer } from './retry.ts';

/** One validation problem of a request. */
export interface Problem {
  loc: (string | number)[];
  msg: string;
  type: string;
}

/** Thrown by every call: an error response of the service, or a failure to reach it. */
export class ApiError extends TRPCClientError<AppRouter> {
  /**
   * A documented code such as `not_found`; `network_error` without a response, `aborted` by the caller's signal,
   * `unreadable_answer` if the response is not the service's.
   */
  readonly code: string;
  /** HTTP status; null without a response. */
  readonly status: number | null;
  /** A message; the list of problems of a 422; an object where the API reference says so. */
  readonly detail: unknown;
  /** Identifies the request in the operator's logs; null without a response. */
  readonly request_id: string | null;
  /** The other keys of the response: `required_permission`, `limit`, ids of conflicting items. */
  readonly context: Record<string, unknown>;

  constructor(error: TRPCClientError<AppRouter>) {
    const unreadable = error.cause instanceof UnreadableAnswer ? error.cause : undefined;
    const {
      code,
      detail,
      httpStatus,
      request_id,
      path: _path,
      ...context
    } = (error.data ?? {}) as Record<string, unknown>;
    super(sentence(detail) ?? error.message, {
      cause: error.cause,
      result: error.shape ? { error: error.shape } : undefined,
    });
    // TRPCClientError's constructor sets its own prototype.
    Object.setPrototypeOf(this, ApiError.prototype);
    this.name = 'ApiError';
    this.status = (httpStatus as number | undefined) ?? unreadable?.status ?? null;
    this.code =
      (code as string | undefined) ??
      (unreadable ? 'unreadable_answer' : isAbort(error.cause) ? 'aborted' : 'network_error');
    this.detail = detail ?? error.message;
    this.request_id = (request_id as string | undefined) ?? unreadable?.request_id ?? null;
    this.context = context;
  }

  /** The problems of a 422; empty for every other error. */
  get problems(): Problem[] {
    return this.status === 422 && Array.isArray(this.detail) ? this.detail : [];
  }
}

/** Whether the typed client threw this error. */
export const isApiError = (error: unknown): error is ApiError => error instanceof ApiError;

const isAbort = (cause: unknown) =>
  cause instanceof Error && (cause.name === 'AbortError' || cause.name === 'TimeoutError');

const sentence = (detail: unknown): string | undefined => {
  if (typeof detail === 'string') return detail;
  if (!Array.isArray(detail)) return undefined;
  return (detail as Problem[]).map(({ loc, msg }) => `${loc.slice(1).join('.') || loc[0]}: ${msg}`).join('; ');
};

/** Converts every error of the links behind it into an ApiError. */
export const typedErrors: TRPCLink<AppRouter> =
  () =>
  ({ op, next }) =>
    observable((observer) =>
      next(op).subscribe({
        next: (value) => observer.next(value),
        error: (error) => observer.error(isApiError(error) ? error : new ApiError(error)),
        complete: () => observer.complete(),
      }),
    );
