import { afterAll, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { createApiClient, isApiError } from '../../client/api.ts';
import { apiKeys } from '../../db/schema/index.ts';
import { createApp } from '../../server/http/app.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { followersNow, type RunProgress } from '../../server/resources/runs/progress.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';
import { until } from '../support/until.ts';

const service = await testDeps({ role: 'worker' });
const { deps } = service;
const api = testApi(service);
const make = makerOf(api.call);
const app = createApp(deps).listen({ hostname: '127.0.0.1', port: 0 });
const url = `http://127.0.0.1:${app.server!.port}`;
const client = createApiClient(url, service.api_key);
const worker = await startWorker(deps);
afterAll(async () => {
  await app.server?.stop(true);
  await worker.stop();
});

const UNKNOWN = '01900000-0000-7000-8000-000000000000';

async function started(parameters: object = {}) {
  const source = await make.source(parameters);
  const connection = await make.connection({ source_id: source.id });
  const connection_run_id = await client.runs.run.mutate({ connection_id: connection.id });
  return { connection_id: connection.id as string, connection_run_id: connection_run_id! };
}

/** Everything that a subscriber receives, and the error that ended it. */
function follow(run: { connection_id: string; connection_run_id: string }, by = client) {
  const heard: { at: number; progress: RunProgress }[] = [];
  let ended: unknown = null;
  const subscription = by.runs.progress.subscribe(run, {
    onData: (progress) => heard.push({ at: Date.now(), progress }),
    onError: (error) => (ended = error),
    onComplete: () => (ended ??= 'complete'),
  });
  return { heard, ended: () => ended, leave: () => subscription.unsubscribe() };
}

describe('runs.progress', () => {
  test('shows a run while it moves, its final state last, and ends', async () => {
    const run = await started({ rows: 400, batch_rows: 50, batch_delay_ms: 200 });
    const { heard, ended } = follow(run);
    await until(() => ended() !== null, { timeout_ms: 30_000 });
    expect(ended()).toBe('complete');
    const last = heard.at(-1)!.progress;
    expect(last.run).toMatchObject({ id: run.connection_run_id, status: 'succeeded', rows_loaded: 400 });
    expect(last.stream_runs.map(({ status }) => status)).toEqual(['succeeded']);
    expect(heard.filter(({ progress }) => progress.run.status === 'running').length).toBeGreaterThan(0);
  });

  test('is at most a second behind', async () => {
    const run = await started({ rows: 50 });
    const { heard, ended } = follow(run);
    await until(() => ended() !== null, { timeout_ms: 30_000 });
    const { at, progress } = heard.at(-1)!;
    expect(at - Date.parse(progress.run.finished_at!)).toBeLessThan(1000);
  });

  test('404, 401 and 422 end it with their codes', async () => {
    const run = await started();
    const cases = [
      { by: client, run: { ...run, connection_run_id: UNKNOWN }, code: 'not_found', status: 404 },
      { by: client, run: { ...run, connection_id: UNKNOWN }, code: 'not_found', status: 404 },
      { by: createApiClient(url, 'nobody-has-this-key-0123456789'), run, code: 'invalid_token', status: 401 },
      { by: client, run: { ...run, all: true }, code: 'validation_error', status: 422 },
    ];
    for (const { by, run: asked, code, status } of cases) {
      const { ended } = follow(asked, by);
      await until(() => ended() !== null);
      expect(isApiError(ended())).toBe(true);
      expect(ended()).toMatchObject({ code, status, request_id: expect.any(String) });
    }
  });

  test('leaves no listener behind when the client disconnects', async () => {
    const run = await started({ rows: 10_000, batch_rows: 10, batch_delay_ms: 200 });
    const one = follow(run);
    const two = follow(run);
    await until(() => one.heard.length > 0 && two.heard.length > 0);
    expect(followersNow()).toBe(2);
    one.leave();
    await until(() => followersNow() === 1);
    two.leave();
    await until(() => followersNow() === 0);
    await client.runs.stop.mutate({ connection_run_id: run.connection_run_id });
  });

  test('ends when its key is revoked', async () => {
    const key = await api.keyWith([]);
    const run = await started({ rows: 10_000, batch_rows: 10, batch_delay_ms: 200 });
    const { heard, ended } = follow(run, createApiClient(url, key));
    await until(() => heard.length > 0);
    const hash = deps.secrets.hmac('api_key', key);
    await deps.db.update(apiKeys).set({ revoked_at: new Date().toISOString() }).where(eq(apiKeys.hash, hash));
    await until(() => ended() !== null, { timeout_ms: 20_000 });
    expect(ended()).toMatchObject({ code: 'invalid_token', status: 401 });
    await client.runs.stop.mutate({ connection_run_id: run.connection_run_id });
  }, 30_000);

  test('at most 20 per user', async () => {
    const run = await started({ rows: 10_000, batch_rows: 10, batch_delay_ms: 200 });
    const many = Array.from({ length: 20 }, () => follow(run));
    await until(() => followersNow() === 20);
    const refused = follow(run);
    await until(() => refused.ended() !== null);
    expect(refused.ended()).toMatchObject({ code: 'too_many_followers', status: 400 });
    many[0]!.leave();
    await until(() => followersNow() === 19);
    const next = follow(run);
    await until(() => next.heard.length > 0);
    for (const { leave } of [...many, next]) leave();
    await until(() => followersNow() === 0);
    await client.runs.stop.mutate({ connection_run_id: run.connection_run_id });
  });
});
