import type { ApiClient } from '../../api.ts';
import { askText } from '../ask.ts';
import type { Cli } from '../context.ts';
import { CommandError, UsageError } from '../exit.ts';
import { pickWhole } from '../find.ts';
import { readObject } from '../read-document.ts';
import { colouredStatus, moment, number } from '../style.ts';
import { showList, showThing } from '../table.ts';
import { requireConfirmation } from './session.ts';

const DEFAULT_TEST_EVENTS = 100;

export async function listTriggers(cli: Cli, flags: { json: boolean; system: boolean }): Promise<void> {
  const api = await cli.api();
  showList(cli, await api.automation.listTriggers.query({ include_system: flags.system }), {
    json: flags.json,
    empty: 'No triggers',
    columns: {
      name: ({ name }) => name,
      enabled: ({ enabled }) => (enabled ? 'yes' : 'no'),
      state: ({ state }) => colouredStatus(cli.style, state),
      fired: ({ fire_count }) => number(fire_count),
      'last fired': ({ last_fired_at }) => moment(last_fired_at),
    },
    wide: { rule: ({ normalized_rule }) => normalized_rule, id: ({ id }) => id },
  });
}

/** Tests a rule, or the rule of a named trigger, against recent events. */
export async function testRule(cli: Cli, flags: { json: boolean; last?: number }, wanted: string): Promise<void> {
  const api = await cli.api();
  const triggers = await api.automation.listTriggers.query({ include_system: true });
  const named = triggers.find(({ name, id }) => id === wanted || name.toLowerCase() === wanted.toLowerCase());
  const rule = named?.normalized_rule ?? wanted;
  const result = await api.automation.evaluateRule.mutate({ rule, limit: flags.last ?? DEFAULT_TEST_EVENTS });
  if (flags.json) cli.document = result;
  else if (result.is_valid) {
    const matched = result.matched_event_ids ?? [];
    cli.print(`${rule}\n${number(matched.length)} of ${number(result.evaluated_count)} events match`);
    await showEvents(cli, api, matched);
  }
  if (!result.is_valid) throw new CommandError('failed', markError(rule, result.error));
}

/** The rule with a caret below the error. */
function markError(
  rule: string,
  error: { message: string; code: string; position?: { line: number; column: number } | null } | null,
): string {
  if (!error?.position) return `${error?.message} (${error?.code})`;
  const { line, column } = error.position;
  return `${rule.split('\n')[line - 1] ?? rule}\n${' '.repeat(Math.max(0, column - 1))}^ ${error.message} (${error.code})`;
}

async function showEvents(cli: Cli, api: ApiClient, ids: string[]): Promise<void> {
  const matched = new Set(ids);
  const events = (await api.automation.listEvents.query({ limit: 1000 })).filter(({ id }) => matched.has(id));
  if (events.length === 0) return;
  showList(cli, events, {
    json: false,
    empty: '',
    columns: {
      at: ({ occurred_at }) => moment(occurred_at),
      event: ({ event }) => event,
      summary: ({ summary }) => summary,
    },
  });
}

export async function deleteTrigger(cli: Cli, flags: { yes: boolean }, wanted: string): Promise<void> {
  const api = await cli.api();
  const { id, name } = pickWhole(await api.automation.listTriggers.query({}), wanted, 'trigger');
  await requireConfirmation(cli, { yes: flags.yes, message: `Delete the trigger "${name}"?` });
  await api.automation.deleteTrigger.mutate({ trigger_id: id });
  cli.print(`Deleted: ${name}`);
}

type Case = Awaited<ReturnType<ApiClient['automation']['listCases']['query']>>[number];

export async function cases(cli: Cli, flags: { json: boolean; status?: string }, wanted?: string): Promise<void> {
  const api = await cli.api();
  const status = flags.status === undefined ? undefined : statusOf(flags.status);
  const all = await api.automation.listCases.query(wanted === undefined ? { status } : {});
  if (wanted === undefined) {
    return showList(cli, all, {
      json: flags.json,
      empty: status === undefined ? 'No cases' : `No ${status} cases`,
      columns: {
        '#': ({ number: own }) => String(own),
        status: (one) => colouredStatus(cli.style, one.status),
        severity: ({ severity }) => severity,
        title: ({ title }) => title,
        last: ({ last_event_at }) => moment(last_event_at),
      },
      wide: { events: ({ event_count }) => number(event_count), id: ({ id }) => id },
    });
  }
  const found = all.find(({ id, number: own }) => id === wanted || String(own) === wanted.replace(/^#/, ''));
  if (!found) throw new CommandError('not_found', `No case matches "${wanted}"`);
  if (status) await api.automation.updateCase.mutate({ case_id: found.id, status });
  const one = await api.automation.getCase.query({ case_id: found.id });
  showThing(cli, one, {
    json: flags.json,
    lines: {
      case: `#${one.number} ${one.title}`,
      status: colouredStatus(cli.style, one.status),
      trigger: one.trigger_name,
      events: `${number(one.event_count)}, ${moment(one.first_event_at)} to ${moment(one.last_event_at)}`,
      error: one.last_error ?? '–',
    },
  });
}

function statusOf(text: string): Case['status'] {
  if (text === 'open' || text === 'acknowledged' || text === 'resolved' || text === 'suppressed') return text;
  throw new UsageError(`"${text}" is not a case status; use open, acknowledged, resolved or suppressed`);
}

export interface CreatingTrigger {
  json: boolean;
  name?: string;
  rule?: string;
  webhook?: readonly string[];
  email?: readonly string[];
  pause: boolean;
  severity?: 'critical' | 'high' | 'warning' | 'info' | 'low';
  cooldown?: number;
  disabled: boolean;
  file?: string;
}

/** Settings of the file, overridden by the flags; actions of both. */
export async function createTrigger(cli: Cli, flags: CreatingTrigger): Promise<void> {
  const given = flags.file === undefined ? {} : await readObject(flags.file);
  const rule = flags.rule ?? given.rule;
  const name = flags.name ?? given.name ?? (await askText(cli, { message: 'Name', hint: 'use --name' }));
  const actions = [...(Array.isArray(given.actions) ? (given.actions as unknown[]) : []), ...actionsOf(flags)];
  if (actions.length === 0)
    throw new UsageError('The trigger has no action. Use --webhook, --email, --pause or --file');
  if (rule === undefined && given.condition === undefined)
    throw new UsageError('The trigger has no rule. Use --rule or --file');
  const created = await (await cli.api()).automation.createTrigger.mutate({
    ...given,
    name,
    ...(rule !== undefined && { rule }),
    actions,
    ...(flags.severity && { severity: flags.severity }),
    ...(flags.cooldown !== undefined && { cooldown_seconds: flags.cooldown }),
    ...(flags.disabled && { enabled: false }),
    // The service validates what comes from the file.
  } as never);
  showThing(cli, created, {
    json: flags.json,
    lines: {
      name: created.name,
      id: created.id,
      rule: created.normalized_rule,
      actions: created.actions.map(({ type }) => String(type)).join(', '),
      enabled: created.enabled ? 'yes' : 'no',
    },
  });
}

const actionsOf = ({ webhook = [], email = [], pause }: CreatingTrigger): object[] => [
  ...webhook.map((url) => ({ type: 'call_webhook', url })),
  ...(email.length > 0
    ? [
        {
          type: 'send_email',
          recipients: [...email],
          subject_template: '{{ trigger_name }}: {{ connection_name }}',
          body_template: '{{ error_message }}\n\n{{ case_url }}',
        },
      ]
    : []),
  ...(pause ? [{ type: 'pause_connection' }] : []),
];
