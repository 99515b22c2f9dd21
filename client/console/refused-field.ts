import { isApiError } from '../api.ts';

/** The field of the request that the service refused, `schedule.cron_expression`; empty: it named none. */
export function refusedField(error: unknown): string {
  const field = isApiError(error) ? error.context.field : undefined;
  return typeof field === 'string' ? field : '';
}
