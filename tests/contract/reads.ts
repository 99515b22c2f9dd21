import { addDays, addMonths, monthOf, utcDay } from '../../server/platform/utc-days.ts';
import type { Contract, Json } from './document.ts';
import type { World } from './world.ts';

export interface Read {
  /** As in the document, with the query. */
  name: string;
  /** With the ids of the world filled in. */
  path: string;
  template: string;
}

/** Answers that sum up a whole table or window for any page. */
export const WHOLE = [
  '/billing/usage/aggregated',
  '/billing/usage/connection-usage',
  '/account_connectors',
  '/connection_summaries',
];
/** Answered by a connector, not by a table, or only for sources of one connector. */
const LIVE = ['/automation/chat_channels/', '/dynamic_possible_values/', '/webhook'];

const VALUES: Record<string, string> = { connector_type: 'source', start_date: '2026-01-01', end_date: '2026-01-31' };

function thisMonth(): string {
  const start = monthOf(utcDay(new Date()));
  return `start_date=${start}&end_date=${addDays(addMonths(start, 1), -1)}`;
}

/** Lists with pages, and their filters, rare and common. */
const queriesOf = (world: World): Record<string, string[]> => ({
  '/connections': [
    '',
    'status=active',
    'status=locked',
    'tag=rare',
    'folder=rare',
    'offset=50',
    `source_id=${world.source_id![0]}`,
  ],
  '/connections/{connection_id}/runs': ['', 'offset=50', 'status=failed', 'created_before=2020-01-01'],
  '/connections/{connection_id}/runs/{connection_run_id}/stream_runs': [''],
  '/automation/events': [
    '',
    'category=connection',
    'severity=critical',
    'event=connection_created',
    `connection_id=${world.connection_id![0]}`,
  ],
  '/automation/cases': ['', 'status=open', `trigger_id=${world.trigger_id![0]}`],
  '/automation/triggers': [''],
  '/account_connectors': ['', 'connector_type=source'],
  '/billing/usage/connection-usage': ['start_date=2026-01-01&end_date=2026-01-31', thisMonth()],
});

/** Added connectors are found by the same parameter as those of the catalog. */
const kindOf = (path: string, parameter: string) =>
  path.startsWith('/custom_connectors/') && parameter === 'connector_name' ? 'custom_connector_name' : parameter;

/** Every list and get operation of the document; lists return `page` items. */
export function readsOf(contract: Contract, world: World, page: number): Read[] {
  const filters = queriesOf(world);
  return contract.operations
    .filter(({ method, path }) => method === 'GET' && !LIVE.some((part) => path.includes(part)))
    .flatMap(({ path, told }) => {
      const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => VALUES[name] ?? world[kindOf(path, name)]![0]!);
      const required = told.parameters.filter((one: Json) => one.in === 'query' && one.required);
      const given = required.map(({ name }: Json) => `${name}=${VALUES[name]}`);
      const queries = filters[path]?.map((one) => `limit=${page}${one && `&${one}`}`) ?? [given.join('&')];
      return queries.map((query) => {
        const search = query && `?${query}`;
        return { name: `GET ${path}${search}`, path: `${filled}${search}`, template: path };
      });
    });
}
