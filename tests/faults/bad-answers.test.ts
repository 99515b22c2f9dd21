import { afterAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { accountConnectors } from '../../db/schema/index.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { manifestOf, streamOf } from '../connectors/manifest-support.ts';
import { createPlainDatabase, testDeps } from '../support/database.ts';
import { type Answering, startHttpServer } from '../support/http-server.ts';
import { getStreamRuns, makePipeline, type Pipeline, runEnded } from '../support/pipeline.ts';
import { postgresParameters } from '../support/resources.ts';

// What a source answers when something is wrong: the run fails with a clear error, and the table stays as it is.

const server = startHttpServer();
const { host } = new URL(server.url);
const service = await testDeps({ config: { EGRESS_ALLOW: [host] } });
const warehouse = await createPlainDatabase();
const target = postgres(warehouse.url, { max: 1, onnotice: () => {} });
const worker = await startWorker(service.deps);
afterAll(async () => {
  await worker.stop();
  await target.end();
  await warehouse.drop();
  await server.close();
});

const GOOD = [
  { id: 1, at: '2026-01-01T00:00:00Z' },
  { id: 2, at: '2026-01-02T00:00:00Z' },
];
const items =
  (records: unknown): Answering =>
  () =>
    Response.json({ items: records });
const lines =
  (text: string): Answering =>
  () =>
    new Response(text, { headers: { etag: `"${Bun.hash(text)}"` } });
const status =
  (code: number): Answering =>
  () =>
    Response.json({ message: 'the service says why' }, { status: code });
const properties = { id: { type: 'integer' }, at: { type: 'string', format: 'date-time' } };
const manifest = manifestOf([
  streamOf('items', {
    url: server.url,
    path: '/manifest/items',
    selector: { extractor: { type: 'DpathExtractor', field_path: ['items'] } },
    properties,
  }),
]);

interface Case {
  answer: Answering;
  code: string;
  /** What the message names. */
  place: string;
}
interface Kind {
  source: { name: string; parameters: Record<string, unknown> };
  path: string;
  stream: string;
  good: Answering;
  cases: Record<string, Case>;
}

const refused = (what: string) => ({
  'wrong credentials': { answer: status(401), code: 'unauthorized', place: what },
  'missing rights': { answer: status(403), code: 'forbidden', place: what },
  'a wrong address': { answer: status(404), code: 'not_found', place: what },
});

/** A source of JSON over HTTP: a `refusal` names the place or what the service says, and everything else the place. */
const ofJson = (source: Kind['source'], { path, refusal }: { path: string; refusal: string }): Kind => ({
  source,
  path,
  stream: 'items',
  good: items(GOOD),
  cases: {
    ...refused(refusal),
    'a malformed answer': { answer: () => new Response('<html>'), code: 'malformed_json', place: path },
    'half an answer': {
      answer: () => new Response('{"items": [{"id": 1}, {"i'),
      code: 'malformed_json',
      place: 'character',
    },
    'wrong types': { answer: items([{ id: 'one', at: null }]), code: 'value_does_not_fit', place: 'id' },
    'an answer without the records': {
      answer: () => Response.json({ data: [] }),
      code: 'records_missing',
      place: 'has no records at',
    },
  },
});

const definition = {
  base_url: server.url,
  retries: { max_attempts: 1 },
  streams: [
    { name: 'items', request: { path: '/api/items' }, records: 'items', schema: { type: 'object', properties } },
  ],
};

const KINDS: Record<string, Kind> = {
  http_api: ofJson(
    { name: 'http_api', parameters: { definition: JSON.stringify(definition) } },
    { path: '/api/items', refusal: 'the service says why' },
  ),
  airbyte_manifest: ofJson(
    { name: 'airbyte_manifest', parameters: { manifest: JSON.stringify(manifest) } },
    { path: '/manifest/items', refusal: '/manifest/items' },
  ),
  file: {
    source: { name: 'file', parameters: { location: 'http', urls: [`${server.url}/files/items.csv`] } },
    path: '/files/items.csv',
    stream: 'items',
    good: lines('id,at\n1,2026-01-01\n2,2026-01-02\n'),
    cases: {
      ...refused('items.csv'),
      'a malformed answer': { answer: lines('id,at\n1,"2026-01-01\n'), code: 'malformed_csv', place: 'line' },
      'wrong types': { answer: lines('id,at\none,2026-01-01\n'), code: 'value_does_not_fit', place: 'id' },
    },
  },
  xml: {
    source: {
      name: 'file',
      parameters: { location: 'http', urls: [`${server.url}/files/items.xml`], record_element: 'items/item' },
    },
    path: '/files/items.xml',
    stream: 'items',
    good: lines('<items><item><id>1</id></item><item><id>2</id></item></items>'),
    cases: {
      ...refused('items.xml'),
      'a malformed answer': {
        answer: lines('<items>\n<item><id>3</i></items>'),
        code: 'malformed_xml',
        place: 'line 2',
      },
      'half an answer': { answer: lines('<items><item><id>3</id></item><it'), code: 'malformed_xml', place: 'line 1' },
      'wrong types': {
        answer: lines('<items>\n<item><id>one</id></item></items>'),
        code: 'value_does_not_fit',
        place: 'line 2, column "id"',
      },
      'another document': { answer: lines('<error>busy</error>'), code: 'record_element_missing', place: 'error' },
    },
  },
};

const pipelines = new Map<string, Pipeline>();
/** With its good rows in the table. */
async function loaded(name: string, { source, path, stream, good }: Kind): Promise<Pipeline> {
  server.on(path, good);
  // Refused credentials await new ones.
  await service.deps.db.update(accountConnectors).set({ status: 'active', status_message: null });
  const known = pipelines.get(name);
  if (known) return known;
  const pipeline = await makePipeline(service, {
    source,
    destination: { name: 'postgres', parameters: postgresParameters(warehouse.url) },
    stream: { destination_sync_mode: 'overwrite' },
    connection: { destination_schema: name },
    only: [stream],
  });
  expect(await runEnded(service, await pipeline.start())).toMatchObject({ status: 'succeeded' });
  pipelines.set(name, pipeline);
  return pipeline;
}

const all = Object.entries(KINDS).flatMap(([name, kind]) =>
  Object.keys(kind.cases).map((what): [string, string] => [name, what]),
);
test.each(all)('%s: %s fails the run with its place and overwrites nothing', async (name, what) => {
  const kind = KINDS[name] as Kind;
  const { answer, code, place } = kind.cases[what] as Case;
  const pipeline = await loaded(name, kind);
  const rows = async () =>
    (await target.unsafe(`select id::text from ${name}.${kind.stream} order by 1`)).map(({ id }) => id);
  expect(await rows()).toEqual(['1', '2']);
  server.on(kind.path, answer);
  const id = await pipeline.start();
  const ended = await runEnded(service, id);
  expect(ended).toMatchObject({ status: 'failed' });
  const [streamRun] = await getStreamRuns(service, id);
  expect(streamRun?.error).toMatchObject({ code, origin: 'source', message: expect.stringContaining(place) });
  expect(await rows()).toEqual(['1', '2']);
});
