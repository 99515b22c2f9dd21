import { describe, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import { catalogStreams, connectionRuns, connections, events, streamRuns } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';

// No worker runs here: a run stays queued until a test stops it.
const service = await testDeps();
const { deps } = service;
const api = testApi(service);
const { call, anonymous } = api;
const make = makerOf(call);
const viewer = api.as(await api.keyWith([]));
const other = await api.otherAccount();
const foreign = await makerOf(other.call).connection({ run_immediately: true });
const foreignRun = (await other.call('GET', `/connections/${foreign.id}`)).body.active_run_id;

const UNKNOWN = '01900000-0000-7000-8000-000000000000';

const start = async (id: string): Promise<string> => (await call('POST', `/connections/${id}/run`)).body;
const stop = (id: string) => call('POST', `/connections/${id}/stop`);
const rerun = (id: string) => call('POST', `/connections/${id}/rerun`);
async function running(body: Record<string, unknown> = {}) {
  const connection = await make.connection(body);
  return { connection, id: connection.id, run: await start(connection.id) };
}
async function stopped(body: Record<string, unknown> = {}) {
  const created = await running(body);
  await stop(created.run);
  return created;
}

describe('POST /connections/{connection_run_id}/stop', () => {
  test('200: the id of the run, and null once it has ended', async () => {
    const { id, run } = await running();
    expect(await stop(run)).toMatchObject({ status: 200, body: run });
    expect(await stop(run)).toMatchObject({ status: 200, body: null });
    const [ended] = (await call('GET', `/connections/${id}/runs`)).body;
    expect(ended).toMatchObject({ status: 'stopped', stop_requested_by: { id: service.user_id } });
  });

  test('401: without a key', async () => {
    expect((await anonymous('POST', `/connections/${UNKNOWN}/stop`)).status).toBe(401);
  });

  test('403: without connections.run', async () => {
    const { run } = await running();
    expect((await viewer('POST', `/connections/${run}/stop`)).status).toBe(403);
  });

  test('404: unknown, malformed, of another account, and an id of a connection', async () => {
    const { id } = await running();
    for (const run of [UNKNOWN, 'nonsense', foreignRun, id]) expect((await stop(run)).status).toBe(404);
    const [untouched] = (await other.call('GET', `/connections/${foreign.id}/runs`)).body;
    expect(untouched.status).toBe('queued');
  });

  test('422: an unknown query parameter', async () => {
    expect((await call('POST', `/connections/${UNKNOWN}/stop?now=true`)).status).toBe(422);
  });
});

describe('POST /connections/{connection_run_id}/rerun', () => {
  test('200: a new run with the streams of the old one', async () => {
    const { id, run } = await stopped({
      source_id: (await make.source({ streams: 3 })).id,
      streams: [{ name: 'stream_1' }, { name: 'stream_3' }],
    });
    await call('POST', `/connections/${id}`, { streams: [{ name: 'stream_2', selected: true }] });
    const { status, body } = await rerun(run);
    expect(status).toBe(200);
    const [again] = (await call('GET', `/connections/${id}/runs`)).body;
    expect(again).toMatchObject({ id: body, number: 2, trigger_type: 'rerun', rerun_of_run_id: run, streams_total: 2 });
    const streams = (await call('GET', `/connections/${id}/runs/${body}/stream_runs`)).body;
    expect(streams.map((one: { stream_name: string }) => one.stream_name)).toEqual(['stream_1', 'stream_3']);
    const queued = await deps.db.select().from(events).where(eq(events.connection_run_id, body));
    expect(queued).toMatchObject([{ event: 'connection_run_queued', actor: { id: service.user_id } }]);
  });

  test.each([
    ['partially_succeeded', ['succeeded', 'failed', 'stopped'], '', ['stream_2', 'stream_3']],
    ['partially_succeeded', ['succeeded', 'failed', 'stopped'], '?streams=all', ['stream_1', 'stream_2', 'stream_3']],
    ['succeeded', ['succeeded', 'succeeded', 'skipped'], '', ['stream_1', 'stream_2', 'stream_3']],
  ] as const)('200: of a run that %s with %j, rerun%s takes %j', async (status, ended, query, taken) => {
    const { id, run } = await running({ source_id: (await make.source({ streams: 3 })).id });
    const finished_at = new Date().toISOString();
    for (const [index, one] of ended.entries()) {
      const stream = and(eq(streamRuns.connection_run_id, run), eq(streamRuns.stream_name, `stream_${index + 1}`));
      await deps.db.update(streamRuns).set({ status: one, finished_at }).where(stream);
    }
    await deps.db.update(connectionRuns).set({ status, finished_at }).where(eq(connectionRuns.id, run));
    const { body } = await call('POST', `/connections/${run}/rerun${query}`);
    const streams = (await call('GET', `/connections/${id}/runs/${body}/stream_runs`)).body;
    expect(streams.map((row: { stream_name: string }) => row.stream_name)).toEqual([...taken]);
  });

  test('400: run_not_terminal', async () => {
    const { run } = await running();
    const { status, body } = await rerun(run);
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'run_not_terminal', connection_run_id: run, status: 'queued' });
  });

  test('400: run_already_active', async () => {
    const { id, run } = await stopped();
    const live = await start(id);
    const { status, body } = await rerun(run);
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'run_already_active', connection_run_id: live });
  });

  test('400: stream_removed when a stream is deselected or removed from the source', async () => {
    const { id, run, connection } = await stopped({ source_id: (await make.source({ streams: 2 })).id });
    await call('POST', `/connections/${id}`, { streams: [{ name: 'stream_1', selected: false }] });
    const deselected = await rerun(run);
    expect([deselected.status, deselected.body.code]).toEqual([400, 'stream_removed']);
    expect(deselected.body.stream_ids).toEqual([connection.streams[0].id]);
    await call('POST', `/connections/${id}`, { streams: [{ name: 'stream_1', selected: true }] });
    await deps.db
      .update(catalogStreams)
      .set({ removed_at: new Date().toISOString() })
      .where(and(eq(catalogStreams.account_connector_id, connection.source_id), eq(catalogStreams.name, 'stream_2')));
    expect((await rerun(run)).body.stream_ids).toEqual([connection.streams[1].id]);
  });

  test('401: without a key', async () => {
    expect((await anonymous('POST', `/connections/${UNKNOWN}/rerun`)).status).toBe(401);
  });

  test('402: a connection locked by billing', async () => {
    const { id, run } = await stopped();
    await deps.db.update(connections).set({ status: 'locked' }).where(eq(connections.id, id));
    expect((await rerun(run)).status).toBe(402);
  });

  test('403: without connections.run', async () => {
    const { run } = await stopped();
    expect((await viewer('POST', `/connections/${run}/rerun`)).status).toBe(403);
  });

  test('404: unknown, malformed, of another account', async () => {
    for (const run of [UNKNOWN, 'nonsense', foreignRun]) expect((await rerun(run)).status).toBe(404);
  });

  test('422: an unknown query parameter', async () => {
    expect((await call('POST', `/connections/${UNKNOWN}/rerun?x=1`)).status).toBe(422);
  });
});
