import { afterAll } from 'bun:test';
import postgres from 'postgres';
import type { Console } from './console.ts';
import { createPlainDatabase } from './database.ts';
import { runEnded } from './pipeline.ts';
import { postgresParameters } from './resources.ts';
import { until } from './until.ts';

/** The content of the account that the browser looks at. */
export interface World {
  /** Connection ids by name. */
  connections: Record<string, string>;
  source_id: string;
  destination_id: string;
  /** A run with a network log, and one that failed. */
  run: { connection_id: string; id: string };
  failed: { connection_id: string; id: string };
}

/** Has to fit every page: a part without blanks is as long as a table's name can be. */
const LONG_NAME = `Web analytics of all storefronts, ${'unbreakable_identifier_'.repeat(4)}`;
const LONG_CONNECTION = `Sessions, quarter-hourly, ${'of_every_storefront_'.repeat(6)}`;

const SOURCES: [name: string, connector: string, parameters: object][] = [
  ['Shop', 'demo', { rows: 4000 }],
  [LONG_NAME, 'demo', { rows: 9000, seed: 7 }],
  ['Billing API', 'sample', { rows: 60, streams: 3, record_requests: true, token: 'a-token-that-nobody-may-see' }],
  ['Legacy CRM', 'sample', { rows: 40, fault: 'auth' }],
];

const PIPELINES: [name: string, source: string, settings: object][] = [
  ['Legacy CRM to warehouse', 'Legacy CRM', { tags: ['sales'] }],
  [LONG_CONNECTION, LONG_NAME, { schedule: { type: 'interval', interval_minutes: 15 } }],
  ['Nightly archive', 'Shop', { status: 'paused', schedule: { type: 'cron', cron_expression: '30 2 * * *' } }],
  ['Invoices to warehouse', 'Billing API', { tags: ['finance'], schedule: { type: 'interval', interval_minutes: 60 } }],
  ['Shop to warehouse', 'Shop', { tags: ['sales', 'core'], schedule: { type: 'interval', interval_minutes: 60 } }],
];

/** A small account with a fortnight of history and real runs. */
export async function makeWorld({ service, api }: Console): Promise<World> {
  const database = await createPlainDatabase();
  afterAll(() => database.drop());
  const make = async (path: string, body: object): Promise<string> => {
    const answer = await api.call('POST', path, body);
    if (answer.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
    return answer.body.id;
  };
  const connector = (connector_type: string, name: string, connector_name: string, parameters: object) =>
    make('/account_connectors', { name, connector_type, connector_name, parameters });
  const destination_id = await connector('destination', 'Warehouse', 'postgres', postgresParameters(database.url));
  const sources: Record<string, string> = {};
  for (const [name, connector_name, parameters] of SOURCES) {
    sources[name] = await connector('source', name, connector_name, parameters);
  }
  const ids: Record<string, string> = {};
  for (const [index, [name, source, settings]] of PIPELINES.entries()) {
    const destination_schema = `schema_${index}`;
    const body = { name, source_id: sources[source], destination_id, destination_schema, ...settings };
    ids[name] = await make('/connections', body);
  }
  await addHistory(service.url);
  const ran = async (name: string) => {
    const connection_id = ids[name]!;
    let id = '';
    // The schedule may have started one before.
    const starts = async () => {
      const { status, body } = await api.call('POST', `/connections/${connection_id}/run`);
      id = body;
      return status === 200;
    };
    await until(starts, { what: `a run of ${name}` });
    await runEnded(service, id);
    return { connection_id, id };
  };
  const world = { connections: ids, source_id: sources['Shop']!, destination_id };
  await ran('Shop to warehouse');
  await ran(LONG_CONNECTION);
  return { ...world, run: await ran('Invoices to warehouse'), failed: await ran('Legacy CRM to warehouse') };
}

/** A run every six hours for a fortnight of every connection, one in thirteen failed, with its streams and ledger. */
async function addHistory(url: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql`
    insert into connection_runs (id, account_id, connection_id, number, status, run_type, trigger_type, queued_at,
      started_at, finished_at, created_at, updated_at)
    select gen_random_uuid(), account_id, id, 56 - g,
      case when (g + length(name)) % 13 = 0 then 'failed' when (g + length(name)) % 29 = 0 then 'stopped' else 'succeeded' end,
      'plain', 'schedule', began, began, began + (4000 + (g * 7919 + length(name) * 131) % 9000) * interval '1 millisecond', began, began
    from connections, generate_series(1, 55) g, lateral (select now() - g * interval '6 hours' as began) t`;
  await sql`
    insert into stream_runs (id, account_id, connection_id, connection_run_id, stream_id, stream_name, status, sync_mode,
      destination_sync_mode, started_at, finished_at, rows_read, rows_loaded, bytes_read, bytes_loaded, created_at)
    select gen_random_uuid(), r.account_id, r.connection_id, r.id, s.id, s.name, r.status, s.sync_mode,
      s.destination_sync_mode, r.started_at, r.finished_at, loaded, loaded, loaded * 90, loaded * 90, r.created_at
    from connection_runs r join connection_streams s on s.connection_id = r.connection_id,
      lateral (select case when r.status = 'succeeded' then 900 + (r.number * 7919 + length(s.name) * 977) % 2600 else 0 end as loaded) n`;
  await sql`
    insert into usage_ledger (id, account_id, connection_id, connection_run_id, stream_run_id, attempt, day, kind,
      stream_name, rows_free, rows_paid, credits_used, credits_free, bytes_loaded)
    select gen_random_uuid(), account_id, connection_id, connection_run_id, id, 1,
      (created_at at time zone 'UTC')::date, 'elt', stream_name, 0, rows_loaded, rows_loaded, 0, bytes_loaded
    from stream_runs where rows_loaded > 0`;
  await sql`update connections set run_counter = 55, consecutive_failures = case when name like 'Legacy%' then 4 else 0 end`;
  await sql.end();
}
