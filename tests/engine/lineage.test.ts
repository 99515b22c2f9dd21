import { afterAll, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { z } from 'zod';
import { auditEvents } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { startHttpServer } from '../support/http-server.ts';
import { makePipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const facet = (shape: z.ZodRawShape) => z.strictObject({ _producer: z.url(), _schemaURL: z.url(), ...shape });
const Schema = facet({ fields: z.array(z.strictObject({ name: z.string(), type: z.string() })) });
const From = z.strictObject({ namespace: z.string(), name: z.string(), field: z.string() });
const Lineage = facet({ fields: z.record(z.string(), z.strictObject({ inputFields: z.array(From) })) });
const Statistics = facet({ rowCount: z.int(), size: z.int() });
const place = { namespace: z.string().min(1), name: z.string().min(1) };
/** RunEvent of OpenLineage, as far as it is sent. */
const RunEvent = z.strictObject({
  eventType: z.enum(['START', 'COMPLETE', 'ABORT', 'FAIL']),
  eventTime: z.iso.datetime(),
  producer: z.url(),
  schemaURL: z.url(),
  run: z.strictObject({
    runId: z.uuid(),
    facets: z.strictObject({
      errorMessage: facet({ message: z.string(), programmingLanguage: z.string() }).optional(),
    }),
  }),
  job: z.strictObject(place),
  inputs: z.array(z.strictObject({ ...place, facets: z.strictObject({ schema: Schema }) })),
  outputs: z.array(
    z.strictObject({
      ...place,
      facets: z.strictObject({ schema: Schema, columnLineage: Lineage }),
      outputFacets: z.strictObject({ outputStatistics: Statistics }).optional(),
    }),
  ),
});

const receiver = startHttpServer();
let refusals = 1;
const received: z.infer<typeof RunEvent>[] = [];
receiver.on('/lineage', ({ method, headers, body }) => {
  // The first answer is an error: the event is sent again.
  if (refusals-- > 0) return new Response(null, { status: 503 });
  expect([method, headers.authorization]).toEqual(['POST', 'Bearer key']);
  received.push(RunEvent.parse(JSON.parse(body)));
  return new Response(null, { status: 201 });
});
const OPENLINEAGE_URL = `${receiver.url}/lineage`;
const service = await testDeps({ role: 'worker', config: { OPENLINEAGE_URL, OPENLINEAGE_API_KEY: 'key' } });
const worker = await startWorker(service.deps);
const [from, to] = [await createPlainDatabase(), await createPlainDatabase()];
const source = postgres(from.url, { max: 1, onnotice: () => {} });
const target = postgres(to.url, { max: 1, onnotice: () => {} });
afterAll(async () => {
  await worker.stop();
  await Promise.all([source.end(), target.end(), receiver.close()]);
  await Promise.all([from.drop(), to.drop()]);
});

const namespaceOf = (url: string) => `postgres://${new URL(url).hostname}:${new URL(url).port}`;
const databaseOf = (url: string) => new URL(url).pathname.slice(1);
const eventsOf = async (run_id: string) => {
  const found = () => received.filter(({ run }) => run.runId === run_id);
  await until(() => found().length >= 2);
  return found();
};

const usesOfKey = () =>
  service.deps.db.select().from(auditEvents).where(eq(auditEvents.resource_id, 'OPENLINEAGE_API_KEY'));

test('a run reports its start and its end, with datasets and the origin of each column', async () => {
  await source`create table orders (id int primary key, total numeric(8, 2))`;
  await source`insert into orders values (1, 10.5), (2, 20)`;
  const renamed = { selected: true, destination_type: null, masking: 'none' };
  const { connection, start } = await makePipeline(service, {
    source: { name: 'postgres', parameters: postgresParameters(from.url) },
    destination: { name: 'postgres', parameters: postgresParameters(to.url) },
    connection: { destination_schema: 'loaded' },
    stream: { fields: [{ ...renamed, path: ['total'], destination_name: 'amount' }] },
  });
  const run_id = await start();
  expect(await runEnded(service, run_id)).toMatchObject({ status: 'succeeded' });
  const [began, ended] = await eventsOf(run_id);
  expect(await usesOfKey()).toMatchObject([
    { kind: 'secret_use', action: 'report_lineage', details: { host: new URL(receiver.url).host } },
  ]);
  const input = { namespace: namespaceOf(from.url), name: `${databaseOf(from.url)}.public.orders` };
  const output = { namespace: namespaceOf(to.url), name: `${databaseOf(to.url)}.loaded.orders` };
  const job = { namespace: `data-pipelines/${service.account_id}`, name: connection.name };
  expect(began).toMatchObject({ eventType: 'START', job, inputs: [input], outputs: [output] });
  expect(ended).toMatchObject({
    eventType: 'COMPLETE',
    job,
    inputs: [
      {
        ...input,
        facets: {
          schema: {
            fields: [
              { name: 'id', type: 'integer' },
              { name: 'total', type: 'numeric(8,2)' },
            ],
          },
        },
      },
    ],
    outputs: [
      {
        ...output,
        facets: {
          schema: { fields: [{ name: 'id' }, { name: 'amount' }] },
          columnLineage: {
            fields: {
              id: { inputFields: [{ ...input, field: 'id' }] },
              amount: { inputFields: [{ ...input, field: 'total' }] },
            },
          },
        },
        outputFacets: { outputStatistics: { rowCount: 2 } },
      },
    ],
  });
  expect(Date.parse(ended!.eventTime)).toBeGreaterThanOrEqual(Date.parse(began!.eventTime));
});

test('a failed run reports its error and no table that it did not write', async () => {
  await source`create table gone (id int primary key)`;
  const { start } = await makePipeline(service, {
    source: { name: 'postgres', parameters: postgresParameters(from.url) },
    destination: { name: 'postgres', parameters: postgresParameters(to.url) },
    only: ['gone'],
  });
  await source`drop table gone`;
  const run_id = await start();
  const { error } = await runEnded(service, run_id);
  const [, ended] = await eventsOf(run_id);
  expect(ended).toMatchObject({
    eventType: 'FAIL',
    run: { facets: { errorMessage: { message: error!.message } } },
    inputs: [],
    outputs: [],
  });
});
