import { z } from 'zod';
import type { UserRow } from '../../../db/schema/index.ts';
import { SEVERITIES } from '../../../db/schema/closed-sets.ts';
import { changedColumns } from '../../api/changed-columns.ts';
import { requireQuietHours } from '../../api/quiet-hours.ts';
import { timeOfDay } from '../../api/wire-types.ts';
import { type QuietSettings, quietSettingsOf } from '../../pipeline/quiet-hours.ts';

const preferences = {
  quiet_from: z.string().nullable().meta({
    description:
      'When the own quiet hours of the user begin, HH:MM in the time zone of the user, or else of the account. Null: there are none.',
  }),
  quiet_until: z.string().nullable(),
  urgent_severity: z
    .enum(SEVERITIES)
    .nullable()
    .meta({ description: 'Sent during quiet hours too, from this severity up. Null: nothing is.' }),
};

export const NotificationPreferences = z.object(preferences).meta({ id: 'NotificationPreferences' });

export const UpdateNotificationPreferences = z
  .strictObject({
    quiet_from: timeOfDay().nullable(),
    quiet_until: timeOfDay().nullable(),
    urgent_severity: preferences.urgent_severity,
  })
  .partial()
  .meta({
    id: 'UpdateNotificationPreferences',
    description: 'Emails to the user wait for the end of these quiet hours. Omitted keys stay unchanged.',
  });

export const preferencesOf = ({ notification_preferences }: Pick<UserRow, 'notification_preferences'>): QuietSettings =>
  quietSettingsOf(notification_preferences);

/** Those stored if nothing changes. @throws ApiError 400 `invalid_quiet_hours` */
export function changedPreferences(
  user: UserRow,
  given: z.output<typeof UpdateNotificationPreferences>,
): UserRow['notification_preferences'] {
  const before = preferencesOf(user);
  const after = { ...before, ...changedColumns(before, given) };
  requireQuietHours(after, 'notification_preferences.');
  return Bun.deepEquals(before, after) ? user.notification_preferences : after;
}
