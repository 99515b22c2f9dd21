import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { accountConnectors, connectionRuns, connections } from '../../db/schema/index.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { endRun } from '../support/pipeline.ts';
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
const UNKNOWN = '01900000-0000-7000-8000-000000000000';

const start = async (id: string): Promise<string> => (await call('POST', `/connections/${id}/run`)).body;
const stop = (id: string) => call('POST', `/connections/${id}/stop`);
async function running(body: Record<string, unknown> = {}) {
  const connection = await make.connection(body);
  return { connection, id: connection.id, run: await start(connection.id) };
}
async function stopped(body: Record<string, unknown> = {}) {
  const created = await running(body);
  await stop(created.run);
  return created;
}

describe('POST /connections/{connection_id}/run', () => {
  test.each([undefined, null, {}, { start_date: null }])('200: body %j starts a plain run', async (body) => {
    const { id } = await make.connection();
    const answer = await call('POST', `/connections/${id}/run`, body);
    expect(answer.status).toBe(200);
    const [run] = (await call('GET', `/connections/${id}/runs`)).body;
    expect(run).toMatchObject({ id: answer.body, number: 1, status: 'queued', run_type: 'plain', trigger_type: 'api' });
  });

  test('200: starts a run of a paused connection', async () => {
    const { id } = await make.connection({ status: 'paused' });
    expect((await call('POST', `/connections/${id}/run`)).status).toBe(200);
  });

  test('400: run_already_active with the id of that run, also for twenty parallel starts', async () => {
    const { id } = await make.connection();
    const answers = await Promise.all(Array.from({ length: 20 }, () => call('POST', `/connections/${id}/run`)));
    const [won, ...more] = answers.filter((one) => one.status === 200);
    expect(more).toEqual([]);
    for (const lost of answers.filter((one) => one.status !== 200)) {
      expect(lost.status).toBe(400);
      expect(lost.body).toMatchObject({ code: 'run_already_active', connection_run_id: won?.body });
    }
    expect((await call('GET', `/connections/${id}/runs`)).body).toHaveLength(1);
  });

  test('400: run_already_active while a worker is ending that run; neither waits for the other', async () => {
    const { id, run } = await running();
    await deps.db.transaction(async (worker) => {
      await endRun(worker, run);
      const answer = await call('POST', `/connections/${id}/run`);
      expect(answer.body).toMatchObject({ code: 'run_already_active', connection_run_id: run });
      await worker
        .update(connections)
        .set({ last_succeeded_at: deps.now().toISOString() })
        .where(eq(connections.id, id));
    });
    await start(id);
    expect((await call('GET', `/connections/${id}/runs`)).body[0]).toMatchObject({ number: 2, status: 'queued' });
  });

  test('400: account_connector_not_ready and no_streams_selected', async () => {
    const { id, source_id } = await make.connection();
    const codeOf = async () => (await call('POST', `/connections/${id}/run`)).body.code;
    await deps.db.update(accountConnectors).set({ status: 'needs_reauth' }).where(eq(accountConnectors.id, source_id));
    expect(await codeOf()).toBe('account_connector_not_ready');
    await deps.db.update(accountConnectors).set({ status: 'active' }).where(eq(accountConnectors.id, source_id));
    await call('POST', `/connections/${id}`, { streams: [{ name: 'stream_1', selected: false }] });
    expect(await codeOf()).toBe('no_streams_selected');
  });

  test('401: without a key', async () => {
    expect((await anonymous('POST', `/connections/${UNKNOWN}/run`)).status).toBe(401);
  });

  test('402: a connection that billing has locked', async () => {
    const { id } = await make.connection();
    await deps.db.update(connections).set({ status: 'locked' }).where(eq(connections.id, id));
    const { status, body } = await call('POST', `/connections/${id}/run`);
    expect([status, body.code]).toEqual([402, 'connection_locked']);
  });

  test('403: without connections.run', async () => {
    const { id } = await make.connection();
    const editor = api.as(await api.keyWith(['connections.update']));
    const { status, body } = await editor('POST', `/connections/${id}/run`);
    expect([status, body.required_permission]).toEqual([403, 'connections.run']);
  });

  test('404: unknown, malformed, of another account', async () => {
    for (const id of [UNKNOWN, 'nonsense', foreign.id]) {
      expect((await call('POST', `/connections/${id}/run`)).status).toBe(404);
    }
  });

  test('422: bodies with invalid fields', async () => {
    const { status, body } = await call('POST', `/connections/${UNKNOWN}/run`, { start_date: 'May', colour: 'red' });
    expect(status).toBe(422);
    expect(body.detail).toHaveLength(2);
  });
});

describe('GET /connections/{connection_id}/runs', () => {
  test('200: newest first with totals of their streams, in pages with the total count', async () => {
    const { id, run } = await running({ source_id: (await make.source({ streams: 2 })).id });
    const streams = { rows_read: 5, rows_loaded: 4, rows_rejected: 1, bytes_read: 50, bytes_loaded: 40 };
    const asked = { stop_requested_at: deps.now().toISOString(), stop_requested_by: service.user_id };
    await endRun(deps.db, run, 'succeeded', { streams, run: { status: 'stopped', ...asked } });
    const second = await start(id);
    const { status, headers, body } = await call('GET', `/connections/${id}/runs`);
    expect(status).toBe(200);
    expect(body.map((one: { id: string; number: number }) => [one.id, one.number])).toEqual([
      [second, 2],
      [run, 1],
    ]);
    expect(body[1]).toMatchObject({
      status: 'stopped',
      triggered_by: { id: service.user_id },
      stop_requested_by: { id: service.user_id },
      rows_read: 10,
      rows_loaded: 8,
      rows_rejected: 2,
      bytes_read: 100,
      bytes_loaded: 80,
      streams_total: 2,
      streams_succeeded: 2,
      streams_failed: 0,
      has_network_logs: false,
      error: null,
    });
    expect(headers.get('x-total-count')).toBe('2');
    const page = await viewer('GET', `/connections/${id}/runs?limit=1&offset=1`);
    expect(page.body.map((one: { id: string }) => one.id)).toEqual([run]);
    expect(page.headers.get('x-total-count')).toBe('2');
  });

  test('200: only administrators see the internal message of an error', async () => {
    const { id, run } = await stopped();
    const error = {
      code: 'x',
      message: 'It failed',
      origin: 'source' as const,
      type: 'system_error',
      retryable: false,
      stream_name: null,
      internal_message: 'stack',
      occurred_at: new Date().toISOString(),
    };
    await deps.db.update(connectionRuns).set({ error }).where(eq(connectionRuns.id, run));
    expect((await call('GET', `/connections/${id}/runs`)).body[0].error).toEqual(error);
    const shown = (await viewer('GET', `/connections/${id}/runs`)).body[0].error;
    expect(shown).toEqual({ ...error, internal_message: null });
  });

  test('401: without a key', async () => {
    expect((await anonymous('GET', `/connections/${UNKNOWN}/runs`)).status).toBe(401);
  });

  test('404: unknown, malformed, of another account', async () => {
    for (const id of [UNKNOWN, 'nonsense', foreign.id]) {
      expect((await call('GET', `/connections/${id}/runs`)).status).toBe(404);
    }
  });

  test('422: a limit out of range', async () => {
    expect((await call('GET', `/connections/${UNKNOWN}/runs?limit=1001`)).status).toBe(422);
  });
});
