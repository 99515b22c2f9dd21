import { isApiError } from '../api.ts';

/** The field of the request that the service refused, `schedule.cron_expression`; empty: it named none. */
export function refusedField(error: unknown): string {
  if (!isApiError(error)) return '';
  const { field } = error.context;
  if (typeof field === 'string') return field;
  // The first part says that it is the body.
  return error.problems[0]?.loc.slice(1).join('.') ?? '';
}
