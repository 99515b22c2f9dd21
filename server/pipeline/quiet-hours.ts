import { SEVERITIES } from '../../db/schema/closed-sets.ts';
import { latestDaily, nextDaily } from './daily-times.ts';

type Severity = (typeof SEVERITIES)[number];

export interface QuietHours {
  timezone: string;
  /** Local times of day, HH:MM. */
  quiet_from: string;
  quiet_until: string;
}

/** As an account or a person sets them: both times or neither. */
export interface QuietSettings {
  quiet_from: string | null;
  quiet_until: string | null;
  /** Messages of this severity and above do not wait. Null: all wait. */
  urgent_severity: Severity | null;
}

export const NO_QUIET_HOURS: QuietSettings = { quiet_from: null, quiet_until: null, urgent_severity: 'critical' };

/** What is stored holds only the settings that were ever set. */
export const quietSettingsOf = (stored: Partial<QuietSettings>): QuietSettings => ({ ...NO_QUIET_HOURS, ...stored });

/**
 * The end of the quiet hours that `now` lies in, or null. Both ends follow the local clock: a time that it skips is the end
 * of the gap, a time that it repeats counts once.
 */
export function quietUntil({ timezone, quiet_from, quiet_until }: QuietHours, now: Date): Date | null {
  const begun = latestDaily(quiet_from, { timezone, until: now });
  // From just before the start: one gap may skip both.
  const end = nextDaily(quiet_until, { timezone, after: new Date(begun.getTime() - 1) });
  return now < end ? end : null;
}

/** Until when a message of this severity waits, or null. */
export function heldUntil(
  { quiet_from, quiet_until, urgent_severity }: QuietSettings,
  { severity, timezone, now }: { severity: Severity; timezone: string; now: Date },
): Date | null {
  if (quiet_from === null || quiet_until === null) return null;
  const isUrgent = urgent_severity !== null && SEVERITIES.indexOf(severity) >= SEVERITIES.indexOf(urgent_severity);
  return isUrgent ? null : quietUntil({ timezone, quiet_from, quiet_until }, now);
}

/** The setting that is missing, or equal to the other one. */
export function wrongQuietTime({
  quiet_from,
  quiet_until,
}: Pick<QuietSettings, 'quiet_from' | 'quiet_until'>): 'quiet_from' | 'quiet_until' | null {
  if (quiet_from === null) return quiet_until === null ? null : 'quiet_from';
  return quiet_until === null || quiet_from === quiet_until ? 'quiet_until' : null;
}
