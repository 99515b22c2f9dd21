import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { act, read, write } from '../../api/procedure.ts';
import { DriftReport, reportDrift } from './drift.ts';
import { setUpNotifications, SetUpNotificationsRequest } from './notifications.ts';
import {
  getNotificationSettings,
  NotificationSettings,
  UpdateNotificationSettings,
  updateNotificationSettings,
} from './notification-settings.ts';
import { TestedNotification, testNotifications, TestNotificationsRequest } from './test-notifications.ts';
import { TriggerSchema } from './triggers-schema.ts';

export const notificationProcedures = {
  setUpNotifications: act('triggers.update')
    .concat(
      rest('POST', '/automation/notifications', {
        operation_id: 'set_up_notifications',
        summary: 'Send failures and other problems to one place',
        description:
          'Adds the action to every built-in trigger that does not notify this place yet; to the daily digest only on request. Returns the built-in triggers.',
        addition: true,
        body: SetUpNotificationsRequest,
        errors: [400],
      }),
    )
    .output(z.array(TriggerSchema))
    .mutation(({ ctx, input }) => setUpNotifications(ctx, input)),
  testNotifications: act('triggers.update')
    .concat(
      rest('POST', '/automation/notification_tests', {
        operation_id: 'test_notifications',
        summary: 'Send a test message to a channel, or to all channels of a trigger',
        description:
          'With the values of an invented event. Sent at once and not repeated; a failure is answered with its reason.',
        addition: true,
        body: TestNotificationsRequest,
        errors: [400, 404],
      }),
    )
    .output(z.array(TestedNotification))
    .mutation(({ ctx, input }) => testNotifications(ctx, input)),
  getNotificationSettings: read
    .concat(
      rest('GET', '/automation/notification_settings', {
        operation_id: 'get_notification_settings',
        summary: 'Get quiet hours and the time of the daily digest',
        description: 'Of the account. Times of day are in `timezone`, by default that of the account.',
        addition: true,
      }),
    )
    .output(NotificationSettings)
    .query(({ ctx }) => getNotificationSettings(ctx)),
  updateNotificationSettings: write('triggers.update')
    .concat(
      rest('POST', '/automation/notification_settings', {
        operation_id: 'update_notification_settings',
        summary: 'Set quiet hours and the time of the daily digest',
        description:
          'Emails and chat messages wait for the end of quiet hours, except urgent ones; webhooks never wait. The digest is sent by the actions of the built-in trigger "Daily digest".',
        addition: true,
        body: UpdateNotificationSettings,
        errors: [400],
      }),
    )
    .output(NotificationSettings)
    .mutation(({ ctx, input }) => updateNotificationSettings(ctx, input)),
  reportDrift: write('triggers.update')
    .concat(
      rest('POST', '/automation/drift_reports', {
        operation_id: 'report_drift',
        summary: 'Report whether the account differs from a file',
        description: 'Emits `configuration_drifted` or `configuration_matched`, as `apply --dry-run --report` does.',
        addition: true,
        status: 204,
        body: DriftReport,
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => reportDrift(ctx, input)),
};
