import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { colouredStatus, duration, moment, number } from '../style.ts';
import { showThing, table } from '../table.ts';

type Connection = Awaited<ReturnType<ApiClient['connections']['summaries']['query']>>[number];

const needsAttention = ({ status: state, health, schema_change_status }: Connection): boolean =>
  state === 'auto_disabled' || state === 'locked' || health === 'failing' || schema_change_status === 'breaking';

/** Shows whether the service is ready and which connections need attention. */
export async function status(cli: Cli, flags: { json: boolean }): Promise<void> {
  const api = await cli.api();
  const [connections, open, ready] = await Promise.all([
    api.connections.summaries.query(),
    api.automation.listCases.query({ status: 'open' }),
    readiness(cli),
  ]);
  const attention = connections.filter(needsAttention);
  const document = {
    service: { url: cli.login().url, ...ready },
    connections: {
      total: connections.length,
      active: connections.filter((one) => one.status === 'active').length,
      running: connections.filter(({ active_run_id }) => active_run_id !== null).length,
      need_attention: attention.map(({ id, name, status: state, health, last_run }) => ({
        id,
        name,
        status: state,
        health,
        last_run_at: last_run?.finished_at ?? null,
      })),
    },
    furthest_behind: stalest(connections).map(({ id, name, fresh_at }) => ({ id, name, fresh_at })),
    open_cases: open.map(({ id, number: own, title, severity }) => ({ id, number: own, title, severity })),
  };
  const { total, active, running } = document.connections;
  showThing(cli, document, {
    json: flags.json,
    lines: {
      service: `${document.service.url}, ${ready.status}${ready.detail ? `: ${ready.detail}` : ''}`,
      connections: `${number(total)}, ${number(active)} active, ${number(running)} running, ${number(attention.length)} need attention`,
      behind: document.furthest_behind.map(({ name, fresh_at }) => `${name}: ${behind(fresh_at)}`).join(', ') || '–',
      cases: `${number(open.length)} open`,
    },
  });
  if (flags.json) return;
  if (attention.length > 0) cli.print(`\n${attentionTable(cli, attention.slice(0, SHOWN))}`);
  if (attention.length > SHOWN) cli.print(`and ${number(attention.length - SHOWN)} more: status -o yaml shows all`);
  // A title begins with the severity.
  const cases = open.slice(0, SHOWN).map((one) => `#${one.number} ${one.title}`);
  if (open.length > 0) cli.print(`\n${cases.join('\n')}`);
  if (open.length > SHOWN) cli.print(`and ${number(open.length - SHOWN)} more: cases --status open lists all`);
}

/** Of each list, so that the summary above stays in view. */
const SHOWN = 10;

const LISTED = 3;

/** Active connections whose tables hold the oldest state of their source. */
const stalest = (connections: Connection[]) =>
  connections
    .filter((one) => one.status === 'active' && one.fresh_at !== null)
    .toSorted((a, b) => Date.parse(a.fresh_at!) - Date.parse(b.fresh_at!))
    .slice(0, LISTED);

const behind = (fresh_at: string | null): string =>
  fresh_at === null ? 'never loaded' : `${duration(Math.max(0, Date.now() - Date.parse(fresh_at)))} behind`;

const attentionTable = (cli: Cli, connections: Connection[]): string =>
  table(cli, connections, {
    columns: {
      connection: ({ name }) => name,
      status: (one) => colouredStatus(cli.style, one.status),
      health: ({ health }) => colouredStatus(cli.style, health),
      'last run': ({ last_run }) => moment(last_run?.finished_at ?? last_run?.started_at),
      tables: ({ fresh_at }) => behind(fresh_at),
      reason: ({ status_reason }) => status_reason ?? '',
    },
  });

interface Readiness {
  status: string;
  detail: string | null;
}

async function readiness(cli: Cli): Promise<Readiness> {
  const answer = await cli.fetch('/readyz');
  const body = (await answer.json().catch(() => ({}))) as { status?: string; detail?: string };
  return { status: body.status ?? 'not ready', detail: body.detail ?? null };
}
