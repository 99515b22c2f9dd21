import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import type { Shown } from '../output.ts';
import { colouredStatus, moment } from '../style.ts';
import { showList } from '../table.ts';
import { findConnection } from './connections.ts';

type EventQuery = Exclude<Parameters<ApiClient['automation']['listEvents']['query']>[0], void | undefined>;
type AccountEvent = Awaited<ReturnType<ApiClient['automation']['listEvents']['query']>>[number];

export interface EventFilter extends Shown {
  limit?: number;
  event?: string;
  category?: string;
  severity?: EventQuery['severity'];
  connection?: string;
  follow: boolean;
}

const DEFAULT_LIMIT = 50;
const POLL_INTERVAL_MS = 1000;

export async function events(cli: Cli, flags: EventFilter): Promise<void> {
  const api = await cli.api();
  const filter = {
    // The service validates kind and category.
    event: flags.event as EventQuery['event'],
    category: flags.category as EventQuery['category'],
    severity: flags.severity,
    connection_id: flags.connection === undefined ? undefined : (await findConnection(api, flags.connection)).id,
  };
  const newest = await api.automation.listEvents.query({ ...filter, limit: flags.limit ?? DEFAULT_LIMIT });
  if (flags.follow) return follow(cli, api, { filter, newest, json: flags.json });
  showList(cli, newest, {
    json: flags.json,
    empty: 'No events match',
    columns: {
      at: ({ occurred_at }) => moment(occurred_at),
      event: ({ event }) => event,
      summary: ({ summary }) => summary,
    },
    wide: {
      severity: ({ severity }) => severity,
      by: ({ actor }) => actor.name ?? actor.type,
      id: ({ id }) => id,
    },
  });
}

/** Prints the newest events, then each new one. */
async function follow(
  cli: Cli,
  api: ApiClient,
  { filter, newest, json }: { filter: EventQuery; newest: AccountEvent[]; json: boolean },
): Promise<void> {
  const print = (one: AccountEvent) => cli.print(json ? JSON.stringify(one) : lineOf(cli, one));
  for (const one of newest.toReversed()) print(one);
  let after = newest[0]?.id ?? (await api.automation.listEvents.query({ limit: 1 }))[0]?.id;
  for (;;) {
    // Without any event there is nothing to continue after: the first ones are all new.
    const found = await api.automation.listEvents.query({ ...filter, ...(after && { after }) });
    for (const one of after ? found : found.toReversed()) print(one);
    after = (after ? found.at(-1) : found[0])?.id ?? after;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

const lineOf = (cli: Cli, { occurred_at, event, severity, summary }: AccountEvent): string =>
  `${cli.style('dim', moment(occurred_at))}  ${colouredStatus(cli.style, severity)}  ${event}  ${summary}`;
