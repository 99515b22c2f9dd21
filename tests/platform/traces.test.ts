import { afterAll, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { z } from 'zod';
import { auditEvents } from '../../db/schema/index.ts';
import { closeDeps, createDeps } from '../../server/deps.ts';
import { NO_TRACING, within } from '../../server/platform/tracing/span.ts';
import { createIsolation } from '../../server/worker/isolate-stream.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { logServer } from '../support/postgres.ts';
import { startHttpServer } from '../support/http-server.ts';
import { makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';
import { until } from '../support/until.ts';

const hex = (length: number) => z.string().regex(new RegExp(`^(?!0+$)[0-9a-f]{${length}}$`));
const Attribute = z.strictObject({
  key: z.string(),
  value: z.union([
    z.strictObject({ stringValue: z.string() }),
    z.strictObject({ intValue: z.union([z.string(), z.int()]) }),
    z.strictObject({ doubleValue: z.number() }),
    z.strictObject({ boolValue: z.boolean() }),
  ]),
});
const nanos = z.union([z.string().regex(/^\d+$/), z.int()]);
const Span = z.strictObject({
  traceId: hex(32),
  spanId: hex(16),
  parentSpanId: hex(16).optional(),
  traceState: z.string().optional(),
  flags: z.int().optional(),
  name: z.string().min(1),
  kind: z.int().min(1).max(5),
  startTimeUnixNano: nanos,
  endTimeUnixNano: nanos,
  attributes: z.array(Attribute),
  droppedAttributesCount: z.int(),
  events: z.array(z.unknown()),
  droppedEventsCount: z.int(),
  status: z.strictObject({ code: z.int().min(0).max(2), message: z.string().optional() }),
  links: z.array(z.unknown()),
  droppedLinksCount: z.int(),
});
/** ExportTraceServiceRequest of OTLP, in its JSON form. */
const ExportRequest = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes: z.array(Attribute), droppedAttributesCount: z.int() }),
      scopeSpans: z.array(
        z.strictObject({
          scope: z.strictObject({ name: z.string(), version: z.string().optional() }),
          spans: z.array(Span),
        }),
      ),
    }),
  ),
});

const server = startHttpServer();
afterAll(() => server.close());
const spans: z.infer<typeof Span>[] = [];
const services = new Set<string>();
server.on('/v1/traces', ({ method, headers, body }) => {
  expect([method, headers['content-type'], headers['x-tenant']]).toEqual(['POST', 'application/json', 'a b']);
  for (const { resource, scopeSpans } of ExportRequest.parse(JSON.parse(body)).resourceSpans) {
    services.add(String(textOf(resource.attributes, 'service.name')));
    spans.push(...scopeSpans.flatMap((scope) => scope.spans));
  }
  return Response.json({ partialSuccess: {} });
});
server.on('/rows', () => Response.json([{ id: 1 }, { id: 2 }]));

const textOf = (attributes: z.infer<typeof Attribute>[], name: string) =>
  Object.values(attributes.find(({ key }) => key === name)?.value ?? {})[0];

const nameOf = ({ attributes }: z.infer<typeof Span>) => String(textOf(attributes, 'pipeline.stream'));

const { host } = new URL(server.url);
const traced = {
  EGRESS_ALLOW: [host],
  OTEL_EXPORTER_OTLP_ENDPOINT: server.url,
  OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=a%20b',
  OTEL_SERVICE_NAME: 'pipelines-test',
  TRACE_SOURCE_REQUESTS: true,
};
const service = await testDeps({ config: traced });
const definition = { base_url: server.url, streams: [{ name: 'rows', request: { path: '/rows' } }] };
const pipeline = await makePipeline(service, {
  source: { name: 'http_api', parameters: { definition: JSON.stringify(definition) } },
  destination: { name: 'sample', parameters: {} },
});

/** Starts a run with a worker of these settings. */
async function run(
  config: Partial<typeof traced>,
  headers?: Record<string, string>,
  { connection }: Pipeline = pipeline,
  status = 'succeeded',
) {
  const deps = await createDeps({ ...service.deps.config, ...config }, service.url, 'worker');
  const worker = await startWorker(deps);
  const api = testApi({ ...service, deps });
  const { body, status: answered } = await api.call('POST', `/connections/${connection.id}/run`, undefined, headers);
  expect(answered).toBe(200);
  const ended = await runEnded(service, body);
  expect(ended).toMatchObject({ status });
  await worker.stop();
  await closeDeps(deps);
  return deps;
}

test('a trace leads from the request over the queue to the requests of the source', async () => {
  const trace = 'a'.repeat(32);
  await run({}, { traceparent: `00-${trace}-${'b'.repeat(16)}-01` });
  const ofTrace = () => spans.filter(({ traceId }) => traceId === trace);
  await until(() => ofTrace().some(({ name }) => name === 'GET'));
  const { db } = service.deps;
  const uses = await db.select().from(auditEvents).where(eq(auditEvents.resource_id, 'OTEL_EXPORTER_OTLP_HEADERS'));
  expect(uses[0]).toMatchObject({ kind: 'secret_use', action: 'send_traces', details: { host } });
  const named = (name: string) => ofTrace().filter((span) => span.name === name);
  const [request] = named('POST /connections/{connection_id}/run');
  expect(request).toMatchObject({ parentSpanId: 'b'.repeat(16), kind: 2 });
  expect(textOf(request!.attributes, 'http.response.status_code')).toBe(200);
  const [job] = named('execute_stream');
  expect(job).toMatchObject({ parentSpanId: request!.spanId, kind: 5 });
  const [moved] = named('move stream');
  expect(moved!.parentSpanId).toBe(job!.spanId);
  expect(textOf(moved!.attributes, 'pipeline.connection_id')).toBe(pipeline.connection.id);
  const gets = named('GET');
  expect(gets.map(({ parentSpanId }) => parentSpanId)).toEqual(gets.map(() => moved!.spanId));
  const sent = server.seen.filter(({ path, headers }) => path === '/rows' && headers.traceparent?.includes(trace));
  expect(sent.map(({ headers }) => headers.traceparent)).toEqual(gets.map(({ spanId }) => `00-${trace}-${spanId}-01`));
  for (const { startTimeUnixNano, endTimeUnixNano } of ofTrace())
    expect(BigInt(startTimeUnixNano) <= BigInt(endTimeUnixNano)).toBeTrue();
  expect([...services]).toEqual(['pipelines-test']);
});

test('a stream in a process of its own continues the trace of its job', async () => {
  const { call } = testApi(service);
  const { body: run_id } = await call('POST', `/connections/${pipeline.connection.id}/run`);
  const { body: streams } = await call('GET', `/connections/${pipeline.connection.id}/runs/${run_id}/stream_runs`);
  const trace = 'c'.repeat(32);
  const { tracing } = service.deps;
  const job = tracing.begin('job', { traceparent: `00-${trace}-${'d'.repeat(16)}-01` })!;
  await within(job, () => createIsolation(service.deps)(streams[0].id, AbortSignal.timeout(120_000)));
  expect(await runEnded(service, run_id)).toMatchObject({ status: 'succeeded' });
  const named = (name: string) => spans.find((span) => span.traceId === trace && span.name === name);
  await until(() => named('job') !== undefined && named('GET') !== undefined);
  expect(named('execute_stream alone')!.parentSpanId).toBe(named('job')!.spanId);
  expect(named('move stream')!.parentSpanId).toBe(named('execute_stream alone')!.spanId);
  expect(named('GET')!.parentSpanId).toBe(named('move stream')!.spanId);
}, 180_000);

test('streams that share a log have a span each, below that of the log', async () => {
  const [from, to] = [await createPlainDatabase(await logServer()), await createPlainDatabase()];
  const source = postgres(from.url, { max: 1, onnotice: () => {} });
  const target = postgres(to.url, { max: 1, onnotice: () => {} });
  try {
    await source`create table good (id int primary key)`;
    await source`create table refused (id int primary key, total int)`;
    const replicated = await makePipeline(service, {
      source: { name: 'postgres', parameters: { ...postgresParameters(from.url), replication: 'logical' } },
      destination: { name: 'postgres', parameters: postgresParameters(to.url) },
      stream: { sync_mode: 'incremental', destination_sync_mode: 'append_dedup', primary_key: [['id']] },
    });
    await run({}, {}, replicated);
    await target`alter table refused add check (total > 0)`;
    await source`insert into good values (1)`;
    await source`insert into refused values (1, -1)`;
    const trace = 'e'.repeat(32);
    await run({}, { traceparent: `00-${trace}-${'f'.repeat(16)}-01` }, replicated, 'partially_succeeded');
    const named = (name: string) => spans.filter((span) => span.traceId === trace && span.name === name);
    await until(() => named('read log').length > 0 && named('move stream').length > 1);
    const [log] = named('read log');
    expect(named('execute_stream').map(({ spanId }) => spanId)).toContain(log!.parentSpanId!);
    const moved = named('move stream').toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    expect(moved.map((span) => [nameOf(span), span.parentSpanId, span.status.code])).toEqual([
      ['good', log!.spanId, 0],
      ['refused', log!.spanId, 2],
    ]);
  } finally {
    for (const { slot_name } of await source`
      select slot_name from pg_replication_slots where database = current_database()`)
      await source`select pg_drop_replication_slot(${slot_name})`;
    await Promise.all([source.end(), target.end()]);
    await Promise.all([from.drop(), to.drop()]);
  }
});

test('requests of sources carry the trace only by setting, and nothing is traced by default', async () => {
  server.seen.length = 0;
  await run({ TRACE_SOURCE_REQUESTS: false });
  const rows = () => server.seen.filter(({ path }) => path === '/rows');
  expect(rows().map(({ headers }) => headers.traceparent)).toEqual(rows().map(() => undefined));
  server.seen.length = 0;
  const off = await run({ OTEL_EXPORTER_OTLP_ENDPOINT: null as never, TRACE_SOURCE_REQUESTS: true });
  expect(off.tracing).toBe(NO_TRACING);
  expect(server.seen.filter(({ path }) => path === '/v1/traces')).toEqual([]);
  expect(rows().map(({ headers }) => headers.traceparent)).toEqual(rows().map(() => undefined));
});

test('a collector that is away costs no run', async () => {
  await run({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
});
