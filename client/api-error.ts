import { TRPCClientError, type TRPCLink } from '@trpc/client';
import { observable } from '@trpc/server/observable';
import type { AppRouter } from '../server/router.ts';
import { UnreadableAnswer } from './retry.ts';

/** One problem of a request that has not the documented shape. */
export interface Problem {
  loc: (string | number)[];
  msg: string;
  type: string;
}

/** What a call throws: the answer of the service, or the way to it that failed. */
export class ApiError extends TRPCClientError<AppRouter> {
  /** As documented, `not_found`; `network_error` without any answer, `unreadable_answer` for one that is not the service's. */
  readonly code: string;
  /** HTTP status; null without an answer. */
  readonly status: number | null;
  /** A sentence; the list of problems of a 422; an object where the interface says so. */
  readonly detail: unknown;
  /** To name when asking the operator; null without an answer. */
  readonly request_id: string | null;
  /** What stands beside code and detail: `required_permission`, `limit`, ids that are in the way. */
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
    // The parent's constructor sets its own prototype.
    Object.setPrototypeOf(this, ApiError.prototype);
    this.name = 'ApiError';
    this.status = (httpStatus as number | undefined) ?? unreadable?.status ?? null;
    this.code = (code as string | undefined) ?? (unreadable ? 'unreadable_answer' : 'network_error');
    this.detail = detail ?? error.message;
    this.request_id = (request_id as string | undefined) ?? unreadable?.request_id ?? null;
    this.context = context;
  }

  /** The problems of a 422; empty for every other error. */
  get problems(): Problem[] {
    return this.status === 422 && Array.isArray(this.detail) ? this.detail : [];
  }
}

/** Whether a call of the typed client threw this. */
export const isApiError = (error: unknown): error is ApiError => error instanceof ApiError;

const sentence = (detail: unknown): string | undefined => {
  if (typeof detail === 'string') return detail;
  if (!Array.isArray(detail)) return undefined;
  return (detail as Problem[]).map(({ loc, msg }) => `${loc.slice(1).join('.') || loc[0]}: ${msg}`).join('; ');
};

/** Every error of the links after it becomes an ApiError. */
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
