import { describe, expect, test } from 'bun:test';
import { and, eq } from 'drizzle-orm';
import { streamRuns } from '../../db/schema/index.ts';
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
const staff = api.as(await api.keyWith(['cross_account.read']));
const other = await api.otherAccount();
const foreign = await makerOf(other.call).connection({ run_immediately: true });
const foreignRun = (await other.call('GET', `/connections/${foreign.id}`)).body.active_run_id;

const UNKNOWN = '01900000-0000-7000-8000-000000000000';

const start = async (id: string): Promise<string> => (await call('POST', `/connections/${id}/run`)).body;
async function running(body: Record<string, unknown> = {}) {
  const connection = await make.connection(body);
  return { connection, id: connection.id, run: await start(connection.id) };
}

describe('GET /connections/{connection_id}/runs/{connection_run_id}/stream_runs', () => {
  const path = (id: string, run: string, query = '') => `/connections/${id}/runs/${run}/stream_runs${query}`;

  test('200: by name, with progress', async () => {
    const { id, run } = await running({ source_id: (await make.source({ streams: 3 })).id });
    await deps.db
      .update(streamRuns)
      .set({ rows_read: 50, estimated_rows: 200 })
      .where(and(eq(streamRuns.connection_run_id, run), eq(streamRuns.stream_name, 'stream_2')));
    const { status, headers, body } = await viewer('GET', path(id, run));
    expect(status).toBe(200);
    expect(body.map((one: { stream_name: string }) => one.stream_name)).toEqual(['stream_1', 'stream_2', 'stream_3']);
    expect(body[1]).toMatchObject({ status: 'pending', progress_percent: 25, connection_run_id: run });
    expect(body[0]).toMatchObject({ progress_percent: null, has_network_logs: { source: false, destination: false } });
    expect(headers.get('x-total-count')).toBe('3');
    expect((await call('GET', path(id, run, '?limit=2'))).body).toHaveLength(2);
  });

  test('200: with cross_account.read, stream runs of another account, but only with the parameter', async () => {
    expect((await staff('GET', path(foreign.id, foreignRun, '?cross_account=true'))).status).toBe(200);
    expect((await staff('GET', path(foreign.id, foreignRun))).status).toBe(404);
  });

  test('401: without a key', async () => {
    expect((await anonymous('GET', path(UNKNOWN, UNKNOWN))).status).toBe(401);
  });

  test('403: cross_account=true without cross_account.read; false needs no permission', async () => {
    const { id, run } = await running();
    const { status, body } = await call('GET', path(id, run, '?cross_account=true'));
    expect([status, body.required_permission]).toEqual([403, 'cross_account.read']);
    expect((await call('GET', path(id, run, '?cross_account=false'))).status).toBe(200);
  });

  test('404: unknown connection, unknown run, a run of another connection or account', async () => {
    const [one, two] = [await running(), await running()];
    expect((await call('GET', path(UNKNOWN, one.run))).body.detail).toBe('Connection not found');
    for (const run of [UNKNOWN, 'nonsense', two.run, foreignRun]) {
      const { status, body } = await call('GET', path(one.id, run));
      expect([run, status, body.detail]).toEqual([run, 404, 'Connection run not found']);
    }
    expect((await call('GET', path(foreign.id, foreignRun))).status).toBe(404);
  });

  test('422: cross_account that is neither true nor false', async () => {
    expect((await call('GET', path(UNKNOWN, UNKNOWN, '?cross_account=yes'))).status).toBe(422);
  });
});

describe('GET /connections/{connection_id}/runs/{connection_run_id}/log', () => {
  test('200: lines about the run and, filtered by level and stream, about its streams', async () => {
    const { id, run } = await running();
    const line = { at: '2099-01-01T00:00:00.000Z', message: 'As logged', attempt: 1 };
    const log = [
      { ...line, level: 'info' as const, code: 'claimed' },
      { ...line, level: 'warning' as const, code: 'timeout' },
    ];
    const [stream] = await deps.db
      .update(streamRuns)
      .set({ log })
      .where(eq(streamRuns.connection_run_id, run))
      .returning();
    const codes = async (query: string) => {
      const { status, body } = await viewer('GET', `/connections/${id}/runs/${run}/log${query}`);
      expect(status).toBe(200);
      return body.map(({ code }: { code: string }) => code);
    };
    expect(await codes('')).toEqual(['queued', 'claimed', 'timeout']);
    expect(await codes('?level=warning')).toEqual(['timeout']);
    expect(await codes(`?stream_run_id=${stream!.id}&limit=1`)).toEqual(['claimed']);
  });
});

describe('GET /connections/{connection_id}/runs/{connection_run_id}/trends', () => {
  test('200: nothing to compare a first run with', async () => {
    const { id, run } = await running();
    const { status, body } = await viewer('GET', `/connections/${id}/runs/${run}/trends`);
    expect([status, body]).toMatchObject([200, [{ stream_name: 'stream_1', median_rows_loaded: null, runs: [] }]]);
  });
});
