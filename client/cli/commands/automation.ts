import { buildCommand, buildRouteMap } from '@stricli/core';
import type { CreatingTrigger } from '../actions/automation.ts';
import type { SettingNotifications, TestingNotifications } from '../actions/notifications.ts';
import type { EventFilter } from '../actions/events.ts';
import type { Cli } from '../context.ts';
import type { Shown } from '../output.ts';
import {
  connectionNames,
  countFlag,
  help,
  one,
  oneOrNone,
  proposing,
  shown,
  shownAliases,
  switchFlag,
  textFlag,
  textsFlag,
  triggerNames,
  WHOLE,
  withCli,
  yes,
} from './parameters.ts';

const actions = () => import('../actions/automation.ts');

const SEVERITIES = ['critical', 'high', 'warning', 'info', 'low'] as const;
const CASE_STATUSES = ['open', 'acknowledged', 'resolved', 'suppressed'];

const createTrigger = buildCommand<Shown & CreatingTrigger, [], Cli>({
  loader: async () => withCli((await actions()).createTrigger),
  parameters: {
    flags: {
      ...shown,
      name: textFlag('Trigger name'),
      rule: textFlag('Rule that an event must match', 'expression'),
      webhook: textsFlag('Call this URL; repeatable', 'url'),
      email: textsFlag('Send an email to this user; repeatable', 'address'),
      pause: switchFlag('Pause the connection of the event'),
      severity: { kind: 'enum', values: SEVERITIES, brief: 'Severity of its cases', optional: true },
      cooldown: countFlag('Seconds between two firings', 'seconds'),
      disabled: switchFlag('Create the trigger disabled'),
      file: textFlag('YAML or JSON file with every other setting; - reads standard input', 'path'),
    },
    aliases: { ...shownAliases, f: 'file' },
  },
  docs: help('Create a trigger', {
    about: 'A file holds the body of the API request. Flags take precedence over it.',
    examples: [
      'triggers create --name "Pause failing" --rule \'event == "connection_failed" && retry_count > 3\' --pause',
      'triggers create --name Alerts --rule \'severity == "critical"\' --email ada@example.com',
      'triggers create --name Custom --file trigger.yaml',
    ],
  }),
});

export const triggers = buildRouteMap({
  routes: {
    list: buildCommand<Shown & { system: boolean }, [], Cli>({
      loader: async () => withCli((await actions()).listTriggers),
      parameters: { flags: { ...shown, system: switchFlag('Include built-in triggers') }, aliases: shownAliases },
      docs: help('List triggers', { examples: ['triggers list', 'triggers list --system -o wide'] }),
    }),
    create: createTrigger,
    test: buildCommand<Shown & { last?: number }, [string], Cli>({
      loader: async () => withCli((await actions()).testRule),
      parameters: {
        flags: { ...shown, last: countFlag('Number of recent events to test; default 100', 'events') },
        aliases: shownAliases,
        positional: one('rule', 'Rule expression, or the name of a trigger', triggerNames),
      },
      docs: help('Test a rule against past events', {
        examples: ['triggers test \'event == "connection_failed"\'', 'triggers test "Pause failing" --last 500'],
      }),
    }),
    delete: buildCommand<{ yes: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).deleteTrigger),
      parameters: { flags: { yes }, aliases: { y: 'yes' }, positional: one('trigger', WHOLE, triggerNames) },
      docs: help('Delete a trigger', { examples: ['triggers delete "Pause failing"'] }),
    }),
  },
  docs: { brief: 'Manage triggers: list, create, test, delete' },
});

const notificationActions = () => import('../actions/notifications.ts');

export const notifications = buildRouteMap({
  routes: {
    show: buildCommand<Shown & { mine: boolean }, [], Cli>({
      loader: async () => withCli((await notificationActions()).showSettings),
      parameters: { flags: { ...shown, mine: switchFlag('Your own quiet hours') }, aliases: shownAliases },
      docs: help('Show quiet hours and the time of the daily digest', {
        examples: ['notifications show', 'notifications show --mine'],
      }),
    }),
    set: buildCommand<Shown & SettingNotifications, [], Cli>({
      loader: async () => withCli((await notificationActions()).setSettings),
      parameters: {
        flags: {
          ...shown,
          mine: switchFlag('Your own quiet hours, for emails to you; with --quiet and --urgent'),
          quiet: textFlag('Quiet hours, such as 22:00-07:00; off for none', 'from-until'),
          urgent: {
            kind: 'enum',
            values: [...SEVERITIES, 'none'],
            brief: 'Also sent during quiet hours, from this severity up',
            optional: true,
          },
          digest: textFlag('Time of the daily digest, such as 08:00; off for none', 'time'),
          timezone: textFlag('Zone of these times, such as Europe/Berlin; account for that of the account', 'zone'),
        },
        aliases: shownAliases,
      },
      docs: help('Set quiet hours and the time of the daily digest', {
        about: 'Emails and chat messages wait for the end of quiet hours; webhooks never do.',
        examples: [
          'notifications set --quiet 22:00-07:00 --urgent critical',
          'notifications set --digest 08:00',
          'notifications set --mine --quiet 20:00-09:00',
        ],
      }),
    }),
    test: buildCommand<Shown & TestingNotifications, [string?], Cli>({
      loader: async () => withCli((await notificationActions()).sendTests),
      parameters: {
        flags: {
          ...shown,
          webhook: textFlag('Call this URL', 'url'),
          email: textFlag('Send an email to this user', 'address'),
        },
        aliases: shownAliases,
        positional: oneOrNone('trigger', 'Trigger whose channels to test', triggerNames),
      },
      docs: help('Send a test message to a channel, or to all channels of a trigger', {
        examples: ['notifications test "Connection failed"', 'notifications test --email ada@example.com'],
      }),
    }),
  },
  docs: { brief: 'Manage notifications: show, set, test' },
});

export const cases = buildCommand<Shown & { status?: string }, [string?], Cli>({
  loader: async () => withCli((await actions()).cases),
  parameters: {
    flags: {
      ...shown,
      status: {
        ...textFlag('Filter by status; with a case number, set its status', 'status'),
        ...proposing(() => CASE_STATUSES),
      },
    },
    aliases: shownAliases,
    positional: oneOrNone('number', 'Case number'),
  },
  docs: help('List the cases that triggers opened, or show one', {
    examples: ['cases --status open', 'cases 12', 'cases 12 --status resolved'],
  }),
});

export const events = buildCommand<EventFilter, [], Cli>({
  loader: async () => withCli((await import('../actions/events.ts')).events),
  parameters: {
    flags: {
      ...shown,
      limit: countFlag('Number of events; default 50'),
      event: textFlag('Filter by kind, such as connection_failed', 'kind'),
      category: textFlag('Filter by category: connection, run, user, billing, …', 'category'),
      severity: { kind: 'enum', values: SEVERITIES, brief: 'Filter by severity', optional: true },
      connection: { ...textFlag('Filter by connection', 'name'), ...proposing(connectionNames) },
      follow: switchFlag('Print new events until Ctrl-C; with --json one per line'),
    },
    aliases: { ...shownAliases, f: 'follow' },
  },
  docs: help('List the events of the account, newest first', {
    examples: [
      'events --severity critical',
      'events --connection "Shop to analytics" --limit 10',
      'events --follow --json',
    ],
  }),
});
