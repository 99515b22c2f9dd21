import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { CommandError, UsageError } from '../exit.ts';
import { pick } from '../find.ts';
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
      rule: ({ normalized_rule }) => normalized_rule,
      id: ({ id }) => id,
    },
  });
}

/** Tests a rule, or the rule of a named trigger, against recent events. */
export async function testRule(cli: Cli, flags: { json: boolean; last?: number }, wanted: string): Promise<void> {
  const api = await cli.api();
  const triggers = await api.automation.listTriggers.query({ include_system: true });
  const named = triggers.find(({ name, id }) => id === wanted || name.toLowerCase() === wanted.toLowerCase());
  const rule = named?.normalized_rule ?? wanted;
  const result = await api.automation.evaluateRule.mutate({ rule, limit: flags.last ?? DEFAULT_TEST_EVENTS });
  if (flags.json) cli.print(JSON.stringify(result, null, 2));
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
  const { id, name } = pick(await api.automation.listTriggers.query({}), wanted, 'trigger');
  await requireConfirmation(cli, { yes: flags.yes, message: `Delete the trigger "${name}"?` });
  await api.automation.deleteTrigger.mutate({ trigger_id: id });
  cli.print(`Deleted: ${name}`);
}

type Case = Awaited<ReturnType<ApiClient['automation']['listCases']['query']>>[number];

export async function cases(cli: Cli, flags: { json: boolean; status?: string }, wanted?: string): Promise<void> {
  const api = await cli.api();
  const all = await api.automation.listCases.query({});
  if (wanted === undefined) {
    return showList(
      cli,
      all.filter(({ status }) => !flags.status || status === flags.status),
      {
        json: flags.json,
        empty: 'No cases',
        columns: {
          '#': ({ number: own }) => String(own),
          status: ({ status }) => colouredStatus(cli.style, status),
          severity: ({ severity }) => severity,
          title: ({ title }) => title,
          events: ({ event_count }) => number(event_count),
          last: ({ last_event_at }) => moment(last_event_at),
        },
      },
    );
  }
  const found = all.find(({ id, number: own }) => id === wanted || String(own) === wanted.replace(/^#/, ''));
  if (!found) throw new CommandError('not_found', `No case matches "${wanted}"`);
  if (flags.status) await api.automation.updateCase.mutate({ case_id: found.id, status: statusOf(flags.status) });
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
