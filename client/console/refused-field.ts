import { isApiError } from '../api.ts';

/** What the service says against the value of a field; null if the error is about something else. */
export const problemOf = (error: unknown, field: string): string | null =>
  isApiError(error) && refusedField(error) === field ? (error.problems[0]?.msg ?? error.message) : null;

/** The request field that the service rejected, such as `schedule.cron_expression`; empty if the error names none. */
export function refusedField(error: unknown): string {
  if (!isApiError(error)) return '';
  const { field } = error.context;
  if (typeof field === 'string') return field;
  // The first part is `body`.
  return error.problems[0]?.loc.slice(1).join('.') ?? '';
}
