import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import { createApp } from '../../server/http/app.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { json, startHttpServer } from '../support/http-server.ts';
import { mariaDbMissing, testBinlogServer } from '../support/mariadb.ts';
import { runEnded } from '../support/pipeline.ts';
import { makerOf, postgresParameters } from '../support/resources.ts';
import { startS3 } from '../support/s3.ts';
import { until } from '../support/until.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- answers of every shape
type Json = any;

const server = startHttpServer();
const s3 = await startS3();
const hosts = [server.url, String(s3.settings.endpoint)].map((url) => new URL(url).host);
const service = await testDeps({ role: 'worker', config: { EGRESS_ALLOW: hosts } });
const { call } = testApi(service);
const app = createApp(service.deps);
const make = makerOf(call);
const shop = await createPlainDatabase();
const worker = await startWorker(service.deps);
const { body: templates } = (await call('GET', '/pipeline_templates')) as { body: Json[] };
const { body: connectors } = (await call('GET', '/connectors')) as { body: Json[] };

const CUSTOMERS = 'create table customers (id int primary key, email varchar(100))';
const ROWS = "insert into customers values (1, 'Ada@example.com'), (2, 'Bob@example.com')";

beforeAll(async () => {
  const sql = postgres(shop.url, { max: 1, onnotice: () => {} });
  await sql.unsafe(`${CUSTOMERS}; ${ROWS}`);
  await sql.end();
  await s3.put('exports/monday.csv', 'id,email\n1,ada@example.com\n2,bob@example.com\n');
  const orders = [1, 2].map((id) => ({ id, updated_at: `2026-02-0${id}T00:00:00Z` }));
  server.on('/orders', ({ query }) => Response.json({ data: query.page === '1' ? orders : [] }));
  server.on('/crm', json({}));
});
afterAll(async () => {
  await worker.stop();
  await shop.drop();
  await s3.close();
  await server.close();
});

/** What a user of this machine would enter for the source of a template. */
async function sourceParameters({ connector_name }: Json): Promise<Record<string, unknown>> {
  if (connector_name === 'postgres') return postgresParameters(shop.url);
  if (connector_name === 'file') return { region: 'us-east-1', ...s3.settings };
  if (connector_name === 'http_api') return { secrets: { token: 'a token' } };
  if (connector_name === 'webhook') return { secret: 'a secret of the sender' };
  const { sql, database, host, port, username, password } = await testBinlogServer();
  const name = await database();
  await sql(CUSTOMERS, name);
  await sql(ROWS, name);
  return { host, port, username, password, ssl_mode: 'disable', database: name };
}

function destinationParameters({ connector_name }: Json, analytics: string): Record<string, unknown> {
  if (connector_name === 'postgres') return postgresParameters(analytics);
  if (connector_name === 'file') return { region: 'us-east-1', ...s3.settings };
  return { url: `${server.url}/crm`, token: 'a token' };
}

/** The parameters of the template, and no others but those that lead to servers of this machine. */
function filledIn({ parameters, inputs }: Json, given: Record<string, unknown>): Record<string, unknown> {
  const names = inputs.map((input: string) => input.split('.')[0]);
  expect(Object.keys(given)).toEqual(expect.arrayContaining(names));
  const local = ['port', 'ssl_mode', 'endpoint', ...Object.keys(parameters)];
  expect(Object.keys(given).filter((name) => !names.includes(name) && !local.includes(name))).toEqual([]);
  const whole: Record<string, unknown> = { ...given, ...parameters };
  return typeof whole.definition === 'string'
    ? { ...whole, definition: whole.definition.replace('https://api.example.com', server.url) }
    : whole;
}

async function create(template: Json, analytics: string) {
  const { source, destination, connection } = template;
  const from = await make.connector('source', source.connector_name, filledIn(source, await sourceParameters(source)));
  if (source.connector_name === 'webhook') await sendEvent(from.id);
  const to = await make.connector(
    'destination',
    destination.connector_name,
    filledIn(destination, destinationParameters(destination, analytics)),
  );
  const ready = async () =>
    (await call('GET', `/account_connectors/source/${from.id}`)).body.catalog_status === 'ready';
  await until(ready, { what: 'the catalog' });
  const { name, destination_schema, schedule, streams } = connection;
  return make.connection({
    name,
    source_id: from.id,
    destination_id: to.id,
    destination_schema,
    schedule: { ...schedule, timezone: 'UTC' },
    ...(streams.length > 0 && { streams }),
  });
}

async function sendEvent(id: string): Promise<void> {
  const { address } = (await call('GET', `/account_connectors/${id}/webhook`)).body;
  const body = JSON.stringify({ id: 'evt_1', type: 'payment' });
  const headers = { 'x-webhook-secret': 'a secret of the sender', 'content-length': String(body.length) };
  const url = `http://localhost${new URL(address).pathname}`;
  expect((await app.handle(new Request(url, { method: 'POST', body, headers }))).status).toBe(200);
}

/** How many rows of its streams have arrived. */
async function arrived({ destination, connection }: Json, analytics: string): Promise<number> {
  if (destination.connector_name === 'http') {
    return server.seen
      .filter(({ path }) => path === '/crm')
      .flatMap(({ body }) => (body === '' ? [] : JSON.parse(body))).length;
  }
  if (destination.connector_name === 'file')
    return (await s3.keys('shop/customers/')).filter((key) => key.endsWith('.parquet')).length;
  const sql = postgres(analytics, { max: 1, onnotice: () => {} });
  const table = `${connection.destination_schema}.${connection.streams[0]?.name ?? 'customers'}`;
  const [counted] = await sql.unsafe(`select count(*)::int as rows from ${table}`).catch(() => [{ rows: 0 }]);
  await sql.end();
  return counted!.rows;
}

const ROWS_ARRIVED: Record<string, number> = { 'postgres-to-parquet': 1, 'webhooks-to-postgres': 1 };

describe('GET /pipeline_templates', () => {
  test('200; each template presets or asks for what its connectors require', () => {
    const missing = templates.flatMap((template) =>
      (['source', 'destination'] as const).flatMap((side) => {
        const { connector_name, parameters, inputs } = template[side];
        const known = connectors.find((one) => one.connector_type === side && one.name === connector_name).parameters;
        const given = [...Object.keys(parameters), ...inputs.map((input: string) => input.split('.')[0])];
        const named = (wanted: string) => known.some(({ name }: Json) => name === wanted);
        return [
          ...given.filter((name) => !named(name)).map((name) => `${template.name}: unknown ${name}`),
          ...known
            .filter(({ name, required }: Json) => required && !given.includes(name))
            .map(({ name }: Json) => `${template.name}: no ${name}`),
          ...known
            .filter(({ name, secret }: Json) => secret && name in parameters)
            .map(({ name }: Json) => `${template.name}: the secret ${name} is preset`),
        ];
      }),
    );
    expect(missing).toEqual([]);
    expect(templates.length).toBeGreaterThanOrEqual(8);
  });
});

describe.each(templates.map((template) => [template.name as string, template] as const))('%s', (name, template) => {
  const isMissing = template.source.connector_name === 'mysql' && mariaDbMissing !== null;
  test.skipIf(isMissing)(
    'is a pipeline that loads rows in the modes of the template',
    async () => {
      const analytics = await createPlainDatabase();
      const connection = await create(template, analytics.url);
      const { sync_mode, destination_sync_mode, schedule } = template.connection;
      const selected = connection.streams.filter((one: Json) => one.selected);
      expect(selected.length).toBeGreaterThan(0);
      for (const stream of selected) expect(stream).toMatchObject({ sync_mode, destination_sync_mode });
      expect(connection.schedule).toMatchObject(schedule);
      if (schedule.type === 'continuous') {
        await until(async () => (await arrived(template, analytics.url)) === 2, { what: 'the rows' });
      } else {
        const { body: run } = await call('POST', `/connections/${connection.id}/run`);
        expect((await runEnded(service, run)).status).toBe('succeeded');
        expect(await arrived(template, analytics.url)).toBe(ROWS_ARRIVED[name] ?? 2);
      }
      expect((await call('DELETE', `/connections/${connection.id}`)).status).toBe(204);
      await until(async () => (await call('GET', '/connections')).body.length === 0);
      await analytics.drop();
    },
    120_000,
  );
});
