import { afterAll, expect, test } from 'bun:test';
import { startS3 } from '../support/s3.ts';
import { testDeps } from '../support/database.ts';
import { getRun, getStreamRuns, makePipeline, networkLog, runEnded } from '../support/pipeline.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker-process.ts';

const service = await testDeps();
const s3 = await startS3();
afterAll(() => s3.close());

for (const [sync_mode, destination_sync_mode] of [
  ['incremental', 'append'],
  ['full_refresh', 'overwrite'],
] as const) {
  test(`a worker killed while it writes to S3 neither loses nor duplicates a row (${destination_sync_mode})`, async () => {
    const path = `killed-${destination_sync_mode}`;
    const created = await makePipeline(service, {
      source: { name: 'sample', parameters: { rows: 2000, value_bytes: 20_000, batch_rows: 20, batch_delay_ms: 50 } },
      destination: { name: 'file', parameters: { ...s3.settings, path, format: 'jsonl' } },
      stream: { sync_mode, destination_sync_mode },
    });
    const { host } = new URL(String(s3.settings.endpoint));
    const env = { EGRESS_ALLOW: host };
    const first = spawnWorker(service, env);
    const id = await created.start();
    const stream = async () => (await getStreamRuns(service, id))[0];
    const moved = async () => ((await stream())?.[sync_mode === 'incremental' ? 'rows_loaded' : 'rows_read'] ?? 0) > 0;
    await until(moved);
    first.kill('SIGKILL');
    await first.exited;
    expect((await getRun(service, id)).status).toBe('running');
    const second = spawnWorker(service, env);
    expect((await runEnded(service, id)).status).toBe('succeeded');
    second.kill('SIGKILL');
    expect(await stream()).toMatchObject({ attempt: 2, rows_loaded: 2000 });
    const keys = (await s3.keys(`${path}/`)).filter((key) => !key.includes('_pipeline_state'));
    const texts = await Promise.all(keys.map((key) => s3.get(key)));
    const ids = texts.flatMap((text) => (text ?? '').split('\n').filter(Boolean)).map((line) => JSON.parse(line).id);
    expect(ids.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 2000 }, (_, at) => at + 1));
    const log = (await networkLog(service, id)).filter(({ connector_type }) => connector_type === 'destination');
    expect(log.map(({ request }) => request.method)).toContain('PUT');
    expect(log.every(({ request }) => request.headers.authorization === '[redacted]')).toBeTrue();
  });
}
