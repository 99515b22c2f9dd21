import { type QuietSettings, wrongQuietTime } from '../pipeline/quiet-hours.ts';
import { badRequest } from '../platform/errors.ts';

/** @param at prefix of the field that the error names. @throws ApiError 400 `invalid_quiet_hours` */
export function requireQuietHours(settings: Pick<QuietSettings, 'quiet_from' | 'quiet_until'>, at: string): void {
  const wrong = wrongQuietTime(settings);
  if (wrong === null) return;
  throw badRequest('invalid_quiet_hours', 'Quiet hours need a beginning and a different end', { field: at + wrong });
}
