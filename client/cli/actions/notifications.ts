import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { CommandError, UsageError } from '../exit.ts';
import { pickWhole } from '../find.ts';
import { moment } from '../style.ts';
import { showList, showThing } from '../table.ts';

export interface SettingNotifications {
  json: boolean;
  /** The caller's own quiet hours instead of the settings of the account. */
  mine: boolean;
  quiet?: string;
  urgent?: 'critical' | 'high' | 'warning' | 'info' | 'low' | 'none';
  digest?: string;
  timezone?: string;
}

export interface TestingNotifications {
  json: boolean;
  webhook?: string;
  email?: string;
}

type Me = Awaited<ReturnType<ApiClient['users']['me']['query']>>;
type Own = Me['notification_preferences'];
type Settings = Awaited<ReturnType<ApiClient['automation']['getNotificationSettings']['query']>>;

export async function showSettings(cli: Cli, flags: { json: boolean; mine: boolean }): Promise<void> {
  const api = await cli.api();
  if (flags.mine) showOwn(cli, await api.users.me.query(), flags.json);
  else show(cli, await api.automation.getNotificationSettings.query({}), flags.json);
}

/** Changes what the flags name. */
export async function setSettings(cli: Cli, flags: SettingNotifications): Promise<void> {
  const quiet = {
    ...(flags.quiet !== undefined && quietHours(flags.quiet)),
    ...(flags.urgent !== undefined && { urgent_severity: flags.urgent === 'none' ? null : flags.urgent }),
  };
  if (flags.mine) return setOwn(cli, flags, quiet);
  const changes = {
    ...quiet,
    ...(flags.digest !== undefined && { digest_at: flags.digest === 'off' ? null : flags.digest }),
    ...(flags.timezone !== undefined && { timezone: flags.timezone === 'account' ? null : flags.timezone }),
  };
  if (Object.keys(changes).length === 0) throw new UsageError('Nothing to set. See --help');
  show(cli, await (await cli.api()).automation.updateNotificationSettings.mutate(changes), flags.json);
}

async function setOwn(
  cli: Cli,
  { json, digest, timezone }: SettingNotifications,
  notification_preferences: Partial<Own>,
): Promise<void> {
  if (digest !== undefined || timezone !== undefined)
    throw new UsageError('--mine takes --quiet and --urgent. Your time zone is in your profile');
  if (Object.keys(notification_preferences).length === 0) throw new UsageError('Nothing to set. See --help');
  const api = await cli.api();
  const { id: user_id } = await api.users.me.query();
  await api.users.update.mutate({ user_id, notification_preferences });
  showOwn(cli, await api.users.me.query(), json);
}

function quietHours(text: string) {
  if (text === 'off') return { quiet_from: null, quiet_until: null };
  const [quiet_from, quiet_until, ...rest] = text.split('-');
  if (!quiet_from || !quiet_until || rest.length > 0)
    throw new UsageError('--quiet is FROM-UNTIL, such as 22:00-07:00');
  return { quiet_from, quiet_until };
}

function showOwn(cli: Cli, me: Me, json: boolean): void {
  const { quiet_from, quiet_until, urgent_severity } = me.notification_preferences;
  showThing(cli, me.notification_preferences, {
    json,
    lines: {
      'quiet hours': quiet_from === null ? 'none' : `${quiet_from} to ${quiet_until}`,
      urgent: urgent_severity === null ? 'nothing' : `${urgent_severity} and above`,
      'time zone': me.timezone ?? `${me.account.timezone}, that of the account`,
    },
  });
}

function show(cli: Cli, settings: Settings, json: boolean): void {
  const { quiet_from, quiet_until, quiet_now_until, urgent_severity, digest_at, next_digest_at, timezone } = settings;
  const quiet = quiet_from === null ? 'none' : `${quiet_from} to ${quiet_until}`;
  showThing(cli, settings, {
    json,
    lines: {
      'quiet hours': quiet_now_until === null ? quiet : `${quiet}, now until ${moment(quiet_now_until)}`,
      urgent: urgent_severity === null ? 'nothing' : `${urgent_severity} and above`,
      'daily digest': digest_at === null ? 'off' : `at ${digest_at}, next ${moment(next_digest_at)}`,
      'time zone': timezone ?? 'that of the account',
    },
  });
}

/** Tests the channels of a trigger, or one that the flags name. */
export async function sendTests(cli: Cli, flags: TestingNotifications, wanted?: string): Promise<void> {
  const { webhook, email } = flags;
  if ([wanted, webhook, email].filter((one) => one !== undefined).length !== 1)
    throw new UsageError('Name a trigger, or use --webhook or --email');
  const api = await cli.api();
  const tested = await api.automation.testNotifications.mutate(
    wanted === undefined ? { action: channel({ webhook, email }) } : { trigger_id: await triggerId(api, wanted) },
  );
  showList(cli, tested, {
    json: flags.json,
    empty: '',
    columns: {
      channel: ({ type }) => type,
      sent: ({ is_sent }) => (is_sent ? 'yes' : 'no'),
      reason: ({ error }) => (error ? `${error.message} (${error.code})` : ''),
    },
  });
  if (tested.some(({ is_sent }) => !is_sent)) throw new CommandError('failed', 'A test message was not sent');
}

const triggerId = async (api: ApiClient, wanted: string): Promise<string> =>
  pickWhole(await api.automation.listTriggers.query({ include_system: true }), wanted, 'trigger').id;

const channel = ({ webhook, email }: { webhook?: string; email?: string }) =>
  webhook === undefined
    ? {
        type: 'send_email' as const,
        recipients: [email ?? ''],
        subject_template: '{{ trigger_name }}: {{ connection_name }}',
        body_template: '{{ error_message }}',
      }
    : { type: 'call_webhook' as const, url: webhook };
