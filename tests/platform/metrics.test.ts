import { afterAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eq, sql } from 'drizzle-orm';
import pino from 'pino';
import { changeReaders, connections, connectionStreams } from '../../db/schema/index.ts';
import { createMetrics } from '../../server/platform/metrics.ts';
import { measureConnections } from '../../server/worker/metrics/measure-connections.ts';
import { measureInstallation } from '../../server/worker/metrics/measure-installation.ts';
import { serveMetrics } from '../../server/worker/metrics/serve-metrics.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';
import { makePipeline, runEnded } from '../support/pipeline.ts';
import { missingPromtool, promtool } from '../support/promtool.ts';
import { until } from '../support/until.ts';

const DEPLOY = join(import.meta.dir, '../../server/deploy');

const service = await testDeps({ config: { METRICS_PORT: 0, RETRY_BACKOFF_SECONDS: 0 } });
const { db, config } = service.deps;
const lines: Record<string, unknown>[] = [];
const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
const deps = { ...service.deps, log };
const worker = await startWorker(deps);
afterAll(() => worker.stop());
const { raw } = testApi(service);
const sample = { name: 'sample', parameters: {} };
const pipeline = await makePipeline(service, { source: sample, destination: sample });
const broken = await makePipeline(service, {
  source: sample,
  destination: { name: 'file', parameters: { path: '../outside', format: 'jsonl' } },
});
const linesOf = (id: string) => lines.filter((line) => line.connection_run_id === id);

/** The values of a family by its labels, as text. */
async function family(name: string): Promise<Record<string, number>> {
  const text = await (await raw('/metrics')).text();
  const found = text.split('\n').flatMap((line) => {
    const [, labels, value] = new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`).exec(line) ?? [];
    return value === undefined ? [] : [[labels ?? '', Number(value)] as const];
  });
  return Object.fromEntries(found);
}

describe('a run', () => {
  test('that succeeds has a line for its start, each stream and its end, and counts', async () => {
    const id = await pipeline.start();
    await runEnded(service, id);
    await until(() => linesOf(id).some(({ msg }) => msg === 'run ended'));
    const [started] = linesOf(id);
    expect(started).toMatchObject({
      msg: 'run started',
      level: 30,
      connection_id: pipeline.connection.id,
      trigger: 'api',
    });
    const streams = linesOf(id).filter(({ msg }) => msg === 'stream ended');
    expect(streams.length).toBeGreaterThan(0);
    expect(streams[0]).toMatchObject({ outcome: 'succeeded', attempt: 1, stream: expect.any(String) });
    expect(linesOf(id).at(-1)).toMatchObject({
      msg: 'run ended',
      account_id: service.account_id,
      outcome: 'succeeded',
      code: null,
      rows: expect.any(Number),
      ms: expect.any(Number),
    });
    const counted = await family('datapipelines_runs_finished_total');
    expect(counted).toEqual({ 'outcome="succeeded",reason="",trigger="api"': 1 });
    const loaded = streams.reduce((sum, { rows }) => sum + Number(rows), 0);
    expect(await family('datapipelines_rows_total')).toMatchObject({ 'direction="loaded"': loaded });
    expect(await family('datapipelines_connection_last_run_rows')).toMatchObject({
      [`connection_id="${pipeline.connection.id}"`]: loaded,
    });
  });

  test('that fails has lines with its code, and counts it as the reason', async () => {
    const id = await broken.start();
    const run = await runEnded(service, id);
    await until(() => linesOf(id).some(({ msg }) => msg === 'run failed'));
    const code = run.error!.code;
    expect(linesOf(id).find(({ msg }) => msg === 'stream failed')).toMatchObject({ code, level: 40 });
    expect(linesOf(id).at(-1)).toMatchObject({ msg: 'run failed', outcome: 'failed', code, level: 40 });
    const labels = `outcome="failed",reason="${code}",trigger="api"`;
    expect(await family('datapipelines_runs_finished_total')).toMatchObject({ [labels]: 1 });
    expect(await family('datapipelines_connection_consecutive_failures')).toMatchObject({
      [`connection_id="${broken.connection.id}"`]: 1,
    });
  });
});

describe('metrics', () => {
  test('show the queue, the log that sources keep and how late data is', async () => {
    const id = `connection_id="${pipeline.connection.id}"`;
    const [stream] = await db
      .select()
      .from(connectionStreams)
      .where(eq(connectionStreams.connection_id, pipeline.connection.id));
    const next_look_at = '2100-01-01T00:00:00Z';
    await db.insert(changeReaders).values({
      stream_id: stream!.id,
      source_id: pipeline.source.id,
      lag_bytes: 12_345,
      lag_seconds: 2,
      lag_measured_at: new Date().toISOString(),
      next_look_at,
    });
    const schedule = { ...pipeline.connection.schedule, type: 'interval' as const, interval_minutes: 60 };
    const last_succeeded_at = new Date(Date.now() - 10 * 3_600_000).toISOString();
    await db
      .update(connections)
      .set({ schedule, last_succeeded_at, ticking_since: last_succeeded_at })
      .where(eq(connections.id, pipeline.connection.id));
    await db.execute(sql`
      insert into pgboss.job (name, data, start_after) values ('verify_connection', '{}', now() + interval '1 hour')`);
    expect(await family('datapipelines_connection_cdc_retained_wal_bytes')).toEqual({ [id]: 12_345 });
    // The run that follows the log has not ended, however old the last success is.
    const behind = (await family('datapipelines_connection_cdc_lag_seconds'))[id]!;
    expect([behind >= 2, behind < 600]).toEqual([true, true]);
    const [late] = [(await family('datapipelines_connection_overdue_seconds'))[id]!];
    expect(late).toBeGreaterThan(8 * 3600);
    expect((await family('datapipelines_connection_lag_seconds'))[id]).toBeGreaterThan(10 * 3600 - 60);
    expect(await family('datapipelines_queue_jobs')).toMatchObject({ 'queue="verify_connection",state="planned"': 1 });
    expect(await family('datapipelines_worker_slots')).toMatchObject({
      'queue="execute_stream",state="free"': config.WORKER_CONCURRENCY + 1,
    });
  });

  test('of a worker are on a port of its own, and need the token where there is one', async () => {
    const token = 'a-token-of-scrapers';
    const served = serveMetrics({ ...deps, config: { ...config, METRICS_TOKEN: token } });
    await until(() => served.port() !== null);
    const url = `http://127.0.0.1:${served.port()}/metrics`;
    const asked = (authorization?: string) => fetch(url, { headers: authorization ? { authorization } : {} });
    expect((await asked()).status).toBe(401);
    expect((await asked('Bearer another-token')).status).toBe(401);
    expect(await (await asked(`Bearer ${token}`)).text()).toContain('datapipelines_run_duration_seconds_bucket');
    // Probes have no token.
    expect((await fetch(url.replace('/metrics', '/healthz'))).status).toBe(200);
    await served.stop();
  });

  test('show names of connections only to scrapers with a token', async () => {
    const infoOf = async (METRICS_TOKEN: string | null) => {
      const families = await measureConnections({ ...deps, config: { ...config, METRICS_TOKEN } });
      return Object.keys(families.find(({ name }) => name.endsWith('_info'))!.values[0]!.labels!);
    };
    expect(await infoOf(null)).toEqual(['connection_id']);
    expect(await infoOf('a-token-of-scrapers')).toContain('name');
  });

  test('without a control database show that, and no old values', async () => {
    const gone = {
      ...deps,
      db: { execute: () => Promise.reject(new Error('the database is away')) } as unknown as typeof db,
    };
    const metrics = createMetrics();
    metrics.provide('installation', () => measureInstallation(deps));
    expect(await metrics.text()).toContain('datapipelines_database_up 1');
    metrics.provide('installation', () => measureInstallation(gone));
    const text = await metrics.text();
    expect(text).toContain('datapipelines_database_up 0');
    expect(text).not.toContain('datapipelines_queue_jobs');
  });

  test('have a bounded number of reasons', async () => {
    const metrics = createMetrics();
    const none = { seconds: null, rows_read: 0, rows_loaded: 0, rows_rejected: 0, bytes_loaded: 0 };
    for (let at = 0; at < 300; at += 1)
      metrics.runEnded({ outcome: 'failed', reason: `r${at}`, trigger: 'api', ...none });
    const text = await metrics.text();
    expect(text.match(/^datapipelines_runs_finished_total\{/gm)).toHaveLength(201);
    expect(text).toContain('reason="other",trigger="api"} 100');
  });
});

describe('alerts and dashboard', () => {
  const rules = readFileSync(join(DEPLOY, 'prometheus/rules.yml'), 'utf8');
  const dashboard = readFileSync(join(DEPLOY, 'grafana/data-pipelines.json'), 'utf8');

  test('name families that exist, and the guide names all of them', async () => {
    const text = await (await raw('/metrics')).text();
    const families = [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name]) => name!);
    const guide = readFileSync(join(DEPLOY, '../docs/guides/operations/monitoring.md'), 'utf8');
    const named = [...`${rules}\n${dashboard}\n${guide}`.matchAll(/\b(datapipelines_\w+|http_request\w+)/g)];
    const bare = new Set(named.map(([, name]) => name!.replace(/_(bucket|count|sum)$/, '')));
    expect([...bare].filter((name) => !families.includes(name))).toEqual([]);
    expect(families.filter((name) => !guide.includes(name))).toEqual([]);
  });

  test.skipIf(missingPromtool !== null)('pass the checks of Prometheus', async () => {
    const text = await (await raw('/metrics')).text();
    expect(await promtool(['check', 'metrics'], { stdin: text })).toBe('');
    expect(await promtool(['check', 'config', 'prometheus.yml'], { cwd: join(DEPLOY, 'prometheus') })).toContain(
      'SUCCESS',
    );
    expect(await promtool(['test', 'rules', 'rules.test.yml'], { cwd: join(DEPLOY, 'prometheus') })).toContain(
      'SUCCESS',
    );
  });
});
