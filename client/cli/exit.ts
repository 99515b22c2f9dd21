/** Exit codes that scripts rely on; documented in `data-pipelines --help` and the README. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  /** Of `apply --dry-run`, whose other failures are 1. */
  changes: 2,
  authentication: 3,
  not_found: 4,
  unavailable: 5,
  partially_succeeded: 6,
  stopped: 7,
  interrupted: 130,
} as const;
export type Outcome = keyof typeof EXIT;

/** Ends the command with a message and an exit code. */
export class CommandError extends Error {
  constructor(
    readonly outcome: Outcome,
    message: string,
  ) {
    super(message);
  }
}

export class UsageError extends CommandError {
  constructor(message: string) {
    super('usage', message);
  }
}

/** The shape of the client's ApiError. Matched by name because only some commands load the client. */
interface ServiceError {
  name: 'ApiError';
  code: string;
  status: number | null;
  message: string;
  request_id: string | null;
}

const isServiceError = (error: unknown): error is ServiceError => error instanceof Error && error.name === 'ApiError';

/** Of a request beside the client. */
const isNetworkError = (error: unknown): error is Error => error instanceof Error && error.name === 'NetworkError';

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommandError) return EXIT[error.outcome];
  if (isNetworkError(error)) return EXIT.unavailable;
  if (!isServiceError(error)) return EXIT.failed;
  if (error.status === 401 || error.status === 403) return EXIT.authentication;
  if (error.status === 404) return EXIT.not_found;
  return error.status === null || error.status >= 500 || error.status === 429 ? EXIT.unavailable : EXIT.failed;
}

/** The message; for errors of the service also the code and the request id, which the operator needs. */
export function describeFailure(error: unknown): string {
  if (error instanceof CommandError) return error.message;
  if (isNetworkError(error)) return `${error.message} (network_error)`;
  if (!isServiceError(error)) return error instanceof Error ? (error.stack ?? error.message) : String(error);
  const reference = [error.code, ...(error.request_id ? [`request ${error.request_id}`] : [])].join(', ');
  return `${error.message} (${reference})`;
}
