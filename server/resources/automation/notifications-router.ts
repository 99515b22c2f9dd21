import { z } from 'zod';
import { rest } from '../../api/endpoint.ts';
import { act, read, write } from '../../api/procedure.ts';
import {
  AppliedFile,
  compareAppliedFile,
  forgetAppliedFile,
  listAppliedFiles,
  RecordAppliedFile,
  recordAppliedFile,
} from './applied-files.ts';
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

const MAX_FILE_BYTES = 16 * 1024 * 1024;

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
  listAppliedFiles: read
    .concat(
      rest('GET', '/automation/applied_files', {
        operation_id: 'list_applied_files',
        summary: 'List the files of `apply` with which the service compares the account',
        description: 'By owner and file, with the differences that the last comparison found.',
        addition: true,
      }),
    )
    .output(z.array(AppliedFile))
    .query(({ ctx }) => listAppliedFiles(ctx)),
  recordAppliedFile: write('triggers.update')
    .concat(
      rest('POST', '/automation/applied_files', {
        operation_id: 'record_applied_file',
        summary: 'Compare the account with a file every 15 minutes',
        description:
          'Call it when the file has just been applied, as `apply --watch` does. The service keeps which settings the file names and a digest of each as it is now, no values. When the account differs, it emits `configuration_drifted` once, and `configuration_matched` once it no longer does. Secrets are not compared. Calling it again for the same file and owner replaces what is kept.',
        addition: true,
        body: RecordAppliedFile,
        max_body_bytes: MAX_FILE_BYTES,
        errors: [404],
      }),
    )
    .output(AppliedFile)
    .mutation(({ ctx, input }) => recordAppliedFile(ctx, input)),
  compareAppliedFile: write('triggers.update')
    .concat(
      rest('POST', '/automation/applied_files/{applied_file_id}/compare', {
        operation_id: 'compare_applied_file',
        summary: 'Compare the account with an applied file now',
        description: 'As the service does every 15 minutes, with the same events.',
        addition: true,
        errors: [404],
      }),
    )
    .output(AppliedFile)
    .mutation(({ ctx, input }) => compareAppliedFile(ctx, input)),
  forgetAppliedFile: write('triggers.update')
    .concat(
      rest('DELETE', '/automation/applied_files/{applied_file_id}', {
        operation_id: 'forget_applied_file',
        summary: 'Stop comparing the account with an applied file',
        description: 'Emits `configuration_matched` if a difference was reported.',
        status: 204,
        addition: true,
        errors: [404],
      }),
    )
    .output(z.void())
    .mutation(({ ctx, input }) => forgetAppliedFile(ctx, input)),
};
