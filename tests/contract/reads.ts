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
  '/overview/activity',
];
/** Answered by a connector, not by a table, or only for sources of one connector. */
const LIVE = ['/automation/chat_channels/', '/dynamic_possible_values/', '/webhook'];

const VALUES: Record<string, string> = { connector_type: 'source', start_date: '2026-01-01', end_date: '2026-01-31' };

/** Lists with pages, and their filters, rare and common. */
const queriesOf = (world: World): Record<string, string[]> => ({
  '/connections': ['', 'status=active', 'status=locked', 'tag=rare', 'offset=50', `source_id=${world.source_id![0]}`],
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
  '/billing/usage/connection-usage': ['start_date=2026-01-01&end_date=2026-01-31'],
});

/** Every list and get operation of the document; lists return `page` items. */
export function readsOf(contract: Contract, world: World, page: number): Read[] {
  const filters = queriesOf(world);
  return contract.operations
    .filter(({ method, path }) => method === 'GET' && !LIVE.some((part) => path.includes(part)))
    .flatMap(({ path, told }) => {
      const own = path.startsWith('/custom_connectors/') ? { connector_name: world.custom_connector_name![0]! } : {};
      const values: Record<string, string> = { ...VALUES, ...own };
      const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? world[name]![0]!);
      const required = told.parameters.filter((one: Json) => one.in === 'query' && one.required);
      const given = required.map(({ name }: Json) => `${name}=${VALUES[name]}`);
      const queries = filters[path]?.map((one) => `limit=${page}${one && `&${one}`}`) ?? [given.join('&')];
      return queries.map((query) => {
        const search = query && `?${query}`;
        return { name: `GET ${path}${search}`, path: `${filled}${search}`, template: path };
      });
    });
}
