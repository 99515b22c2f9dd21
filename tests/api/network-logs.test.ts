import { describe, expect, test } from 'bun:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { eq } from 'drizzle-orm';
import { networkLogSegments, streamRuns } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { endRun } from '../support/pipeline.ts';
import { makerOf } from '../support/resources.ts';

const service = await testDeps();
const { deps } = service;
const api = testApi(service);
const { call, anonymous, raw } = api;
const make = makerOf(call);
const staff = await api.keyWith(['cross_account.read']);
const other = await api.otherAccount();
const foreign = await makerOf(other.call).connection({ run_immediately: true });
const foreignRun = (await other.call('GET', `/connections/${foreign.id}`)).body.active_run_id;

const UNKNOWN = '01900000-0000-7000-8000-000000000000';

interface Logged {
  id: string;
  run: string;
  /** Stream run ids by name. */
  streams: string[];
}

async function aRun(streams = 1): Promise<Logged> {
  const { id } = await make.connection({ source_id: (await make.source({ streams })).id, run_immediately: true });
  const run = (await call('GET', `/connections/${id}`)).body.active_run_id;
  const { body } = await call('GET', `/connections/${id}/runs/${run}/stream_runs`);
  return { id, run, streams: body.map((one: { id: string }) => one.id) };
}

/** Stores a segment as the engine does: one gzip member with one line. */
async function log(run: string, stream_run_id: string, connector_type: 'source' | 'destination') {
  const id = Bun.randomUUIDv7();
  const line = { id, connector_type };
  const object_key = `network-logs/test/${id}.jsonl.gz`;
  const bytes = gzipSync(`${JSON.stringify(line)}\n`);
  await deps.objects.put(object_key, bytes);
  const [stream] = await deps.db.select().from(streamRuns).where(eq(streamRuns.id, stream_run_id));
  if (!stream) throw new Error('no stream run');
  await deps.db.insert(networkLogSegments).values({
    id,
    account_id: stream.account_id,
    connection_run_id: run,
    stream_run_id,
    connector_type,
    object_key,
    entries: 1,
    bytes: bytes.length,
  });
  return { id, object_key };
}

const linesOf = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line).id as string);
// Not Bun.gunzipSync, which stops after the first member.
const unzip = async (answer: Response) => gunzipSync(Buffer.from(await answer.arrayBuffer())).toString();

describe.each([
  ['GET /connections/{connection_id}/runs/{connection_run_id}/network_logs', true],
  ['GET /connection_runs/{connection_run_id}/network_logs', false],
])('%s', (_name, nested) => {
  const path = (connection: string, run: string, query = '') =>
    nested
      ? `/connections/${connection}/runs/${run}/network_logs${query}`
      : `/connection_runs/${run}/network_logs${query}`;

  test('200: all members of both sides in order, as a gzip file without Content-Encoding', async () => {
    const { id, run, streams } = await aRun(2);
    const written = [
      await log(run, streams[0]!, 'source'),
      await log(run, streams[1]!, 'destination'),
      await log(run, streams[0]!, 'source'),
    ];
    const answer = await raw(path(id, run));
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
    expect(answer.headers.get('content-encoding')).toBeNull();
    expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="${run}.jsonl.gz"`);
    expect(linesOf(await unzip(answer))).toEqual(written.map((one) => one.id));
  });

  test('200: connector_type limits the file to one side', async () => {
    const { id, run, streams } = await aRun();
    const source = await log(run, streams[0]!, 'source');
    const destination = await log(run, streams[0]!, 'destination');
    expect(linesOf(await unzip(await raw(path(id, run, '?connector_type=source'))))).toEqual([source.id]);
    expect(linesOf(await unzip(await raw(path(id, run, '?connector_type=destination'))))).toEqual([destination.id]);
  });

  test('200: an empty gzip member without any log', async () => {
    const { id, run } = await aRun();
    const answer = await raw(path(id, run));
    expect(answer.status).toBe(200);
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(bytes.length).toBeGreaterThan(0);
    expect(gunzipSync(bytes).length).toBe(0);
  });

  test('200: with cross_account.read, logs of another account', async () => {
    expect((await raw(path(foreign.id, foreignRun, '?cross_account=true'), staff)).status).toBe(200);
    expect((await raw(path(foreign.id, foreignRun), staff)).status).toBe(404);
  });

  test('401: without a key', async () => {
    expect((await anonymous('GET', path(UNKNOWN, UNKNOWN))).status).toBe(401);
  });

  test('403: cross_account=true without cross_account.read', async () => {
    const { id, run } = await aRun();
    expect((await call('GET', path(id, run, '?cross_account=true'))).body.required_permission).toBe(
      'cross_account.read',
    );
  });

  test('404: a run that does not exist or belongs to another account', async () => {
    const { id } = await aRun();
    for (const run of [UNKNOWN, 'nonsense', foreignRun]) expect((await call('GET', path(id, run))).status).toBe(404);
  });

  test('422: an unknown connector_type', async () => {
    expect((await call('GET', path(UNKNOWN, UNKNOWN, '?connector_type=chat'))).status).toBe(422);
  });
});

describe('GET /connections/{connection_id}/runs/{connection_run_id}/stream_runs/{stream_run_id}/network_logs', () => {
  const path = ({ id, run, streams }: Logged, query = '?connector_type=source') =>
    `/connections/${id}/runs/${run}/stream_runs/${streams[0]}/network_logs${query}`;

  test.each([1, 3])('200: %d segments are exactly one gzip member under Content-Encoding', async (segments) => {
    const created = await aRun(2);
    const ids: string[] = [];
    for (let n = 0; n < segments; n += 1) ids.push((await log(created.run, created.streams[0]!, 'source')).id);
    await log(created.run, created.streams[0]!, 'destination');
    await log(created.run, created.streams[1]!, 'source');
    const answer = await raw(path(created));
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
    expect(answer.headers.get('content-encoding')).toBe('gzip');
    // Bun reads only the first member, so this also proves that there is no second one.
    expect(linesOf(new TextDecoder().decode(Bun.gunzipSync(await answer.arrayBuffer())))).toEqual(ids);
  });

  test('401: without a key', async () => {
    const created = { id: UNKNOWN, run: UNKNOWN, streams: [UNKNOWN] };
    expect((await anonymous('GET', path(created))).status).toBe(401);
  });

  test('403: cross_account=true without cross_account.read', async () => {
    expect((await call('GET', path(await aRun(), '?connector_type=source&cross_account=true'))).status).toBe(403);
  });

  test('404: without a log, with the reason in the body', async () => {
    const created = await aRun();
    await log(created.run, created.streams[0]!, 'destination');
    const { status, body } = await call('GET', path(created));
    expect(status).toBe(404);
    expect(body.detail).toEqual({
      code: 'network_logs_not_found',
      message: expect.any(String),
      connection_id: created.id,
      connection_run_id: created.run,
      stream_run_id: created.streams[0],
      connector_type: 'source',
      reason: 'run_not_started',
    });
  });

  test('404: an old log has expired, and a started run without a log did not record one', async () => {
    const created = await aRun();
    const started_at = new Date().toISOString();
    await deps.db.update(streamRuns).set({ started_at }).where(eq(streamRuns.connection_run_id, created.run));
    expect((await call('GET', path(created))).body.detail.reason).toBe('not_recorded');
    const { object_key } = await log(created.run, created.streams[0]!, 'source');
    await deps.objects.delete(object_key);
    expect((await call('GET', path(created))).body.detail.reason).toBe('expired');
    await deps.db.delete(networkLogSegments).where(eq(networkLogSegments.connection_run_id, created.run));
    const finished_at = new Date(Date.now() - 15 * 86_400_000).toISOString();
    await endRun(deps.db, created.run, 'succeeded', { run: { finished_at } });
    expect((await call('GET', path(created))).body.detail.reason).toBe('expired');
  });

  test('404: a connection, run or stream run that does not exist or belongs to another run or account', async () => {
    const [one, two] = [await aRun(), await aRun()];
    expect((await call('GET', path({ ...one, id: UNKNOWN }))).body.detail).toBe('Connection not found');
    expect((await call('GET', path({ ...one, run: two.run }))).body.detail).toBe('Connection run not found');
    expect((await call('GET', path({ ...one, streams: two.streams }))).body.detail).toBe('Stream run not found');
    expect((await call('GET', path({ id: foreign.id, run: foreignRun, streams: [UNKNOWN] }))).status).toBe(404);
  });

  test('422: connector_type is required, stream_run_id is a UUID', async () => {
    const created = await aRun();
    const { status, body } = await call('GET', path(created, ''));
    expect(status).toBe(422);
    expect(body.detail).toMatchObject([{ loc: ['query', 'connector_type'], type: 'missing' }]);
    const malformed = await call('GET', path({ ...created, streams: ['nonsense'] }));
    expect(malformed.status).toBe(422);
    expect(malformed.body.detail).toMatchObject([{ loc: ['path', 'stream_run_id'], type: 'uuid_parsing' }]);
  });
});
