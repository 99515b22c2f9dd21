import { describe, expect, test } from 'bun:test';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { closeDays } from '../../server/billing/close-days.ts';
import { sumPeriods } from '../../server/billing/sum-periods.ts';
import { createApp } from '../../server/http/app.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { fillAccount } from '../support/large-account.ts';
import { readContract } from './document.ts';
import { readsOf, WHOLE } from './reads.ts';
import { makeWorld } from './world.ts';

/**
 * Reads are as cheap in a large account as in a small one: no statement scans a large table, and the rows that it
 * reads are proportional to its result. The test looks at plans, not at times.
 */
const SIZE = { connections: 10_000, runs: 30_000, events: 30_000 };
const PAGE = 50;
/** Rows that a statement may read for a page: each item adds a few rows of other tables. */
const MOST_ROWS = PAGE * 20;
/** Counting reads up to 10,000 small entries of an index. */
const MOST_COUNTED = 10_002;
/** Answers about the whole account read its connections with their last runs, and the requested days. */
const MOST_OF_ALL = SIZE.connections * 10;
const LARGE = ['connections', 'connection_streams', 'connection_runs', 'stream_runs', 'network_log_segments'];
LARGE.push('events', 'cases', 'usage_ledger', 'stream_days', 'connection_periods', 'connection_period_changes');

const contract = readContract();
const service = await testDeps();
const client = postgres(service.url, { max: 2, onnotice: () => {} });
const sent: { text: string; values: unknown[] }[] = [];
const logger = { logQuery: (text: string, values: unknown[]) => void sent.push({ text, values }) };
const watched = createApp({ ...service.deps, db: drizzle(client, { logger }) });
const world = await makeWorld(service, { account_id: service.account_id, call: testApi(service).call });
const connection_id = world.connection_id![0]!;
await fillAccount(
  client,
  {
    account_id: service.account_id,
    destination_id: world.destination_id![0]!,
    connection_id,
    stream_id: world.stream_id![0]!,
    trigger_id: world.trigger_id![0]!,
  },
  SIZE,
);
await closeDays(service.deps);
await sumPeriods(service.deps);

const requests = readsOf(contract, world, PAGE);

interface Node {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: Node[];
}

async function nodesOf({ text, values }: { text: string; values: unknown[] }): Promise<Node[]> {
  const [row] = await client.unsafe(`explain (analyze, timing off, format json) ${text}`, values as never[]);
  const flat = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(flat)];
  return flat(row!['QUERY PLAN'][0].Plan);
}

/** Rows that scans of large tables return or discard. */
const touched = (scans: Node[]) =>
  scans
    .filter((node) => LARGE.includes(node['Relation Name'] ?? ''))
    .reduce(
      (sum, node) => sum + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
      0,
    );

describe(`with ${SIZE.connections} connections`, () => {
  test.each(requests.map((one) => [one.name, one] as const))('%s uses indexes', async (_name, { path, template }) => {
    sent.length = 0;
    const headers = { authorization: `Bearer ${service.api_key}` };
    const answer = await watched.handle(new Request(`http://localhost${path}`, { headers }));
    await answer.arrayBuffer();
    expect(answer.status).toBe(200);
    for (const statement of sent.filter(({ text }) => /^\s*(select|with)\b/i.test(text))) {
      const nodes = await nodesOf(statement);
      const counts = statement.text.includes('as matching');
      const large = nodes.filter((node) => LARGE.includes(node['Relation Name'] ?? ''));
      // A full scan can be the cheapest way to count up to a limit or to sum a whole table.
      const scans = large.filter(
        (node) => node['Node Type'] === 'Seq Scan' && node['Actual Loops'] > 0 && !counts && !WHOLE.includes(template),
      );
      expect(
        scans.map((node) => node['Relation Name']),
        statement.text,
      ).toEqual([]);
      const most = counts ? MOST_COUNTED : WHOLE.includes(template) ? MOST_OF_ALL : MOST_ROWS;
      expect(touched(large), statement.text).toBeLessThanOrEqual(most);
    }
  });
});
