import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'bun:test';
import { generateSshKey } from '../../server/platform/ssh-keys.ts';
import { testDeps } from '../support/database.ts';
import { getRun, getStreamRuns, makePipeline, networkLog, runEnded } from '../support/pipeline.ts';
import { startS3 } from '../support/s3.ts';
import { sshdMissing, startSshd } from '../support/sshd.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker-process.ts';

/** Of 20 kB: two checkpoints, and the file of the first one is uploaded in parts. */
const ROWS = 800;

const service = await testDeps();
const [s3, sshd] = [await startS3(), await startSshd(['Subsystem sftp internal-sftp'])];
const home = mkdtempSync('/tmp/data-pipelines-killed-');
afterAll(async () => {
  await s3.close();
  rmSync(home, { recursive: true, force: true });
});
const { private_key, public_key } = generateSshKey('test');
if (!sshdMissing) sshd.authorize(public_key);
const { host, port, username } = sshd;

interface Target {
  settings: Record<string, unknown>;
  /** Host and port. */
  address: string;
  /** The texts of the files of all tables below a folder. */
  texts(path: string): Promise<string[]>;
}

const below = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => !name.includes('_pipeline_state'));

const TARGETS: Record<string, Target> = {
  S3: {
    settings: s3.settings,
    address: new URL(String(s3.settings.endpoint)).host,
    async texts(path) {
      const keys = (await s3.keys(`${path}/`)).filter((key) => !key.includes('_pipeline_state'));
      return Promise.all(keys.map(async (key) => (await s3.get(key)) ?? ''));
    },
  },
  ...(!sshdMissing && {
    SFTP: {
      settings: { location: 'sftp', host, port, username, private_key },
      address: `${host}:${port}`,
      texts: async (path: string) =>
        below(path)
          .filter((name) => name.endsWith('.jsonl'))
          .map((name) => readFileSync(join(path, name), 'utf8')),
    },
  }),
};

for (const [store, { settings, address, texts }] of Object.entries(TARGETS)) {
  for (const [sync_mode, destination_sync_mode] of [
    ['incremental', 'append'],
    ['full_refresh', 'overwrite'],
  ] as const) {
    test(`a worker killed while it writes to ${store} neither loses nor duplicates a row (${destination_sync_mode})`, async () => {
      const path = join(store === 'SFTP' ? home : '.', `killed-${destination_sync_mode}`);
      const created = await makePipeline(service, {
        source: {
          name: 'sample',
          parameters: { rows: ROWS, value_bytes: 20_000, batch_rows: 20, batch_delay_ms: 100 },
        },
        destination: { name: 'file', parameters: { ...settings, path, format: 'jsonl' } },
        stream: { sync_mode, destination_sync_mode },
      });
      const env = { EGRESS_ALLOW: address, CHECKPOINT_KB: '10000' };
      const first = spawnWorker(service, env);
      const id = await created.start();
      const stream = async () => (await getStreamRuns(service, id))[0];
      const moved = async () =>
        ((await stream())?.[sync_mode === 'incremental' ? 'rows_loaded' : 'rows_read'] ?? 0) > 0;
      await until(moved);
      first.kill('SIGKILL');
      await first.exited;
      expect((await getRun(service, id)).status).toBe('running');
      const second = spawnWorker(service, env);
      expect((await runEnded(service, id)).status).toBe('succeeded');
      second.kill('SIGKILL');
      expect(await stream()).toMatchObject({ attempt: 2, rows_loaded: ROWS });
      const lines = (await texts(path)).flatMap((text) => text.split('\n').filter(Boolean));
      const ids = lines.map((line): number => JSON.parse(line).id);
      expect(ids.toSorted((a, b) => a - b)).toEqual(Array.from({ length: ROWS }, (_, at) => at + 1));
      const log = (await networkLog(service, id)).filter(({ connector_type }) => connector_type === 'destination');
      expect(log.map(({ request }) => request.method)).toContain(store === 'S3' ? 'PUT' : 'CONNECT');
      expect(JSON.stringify(log)).not.toContain('PRIVATE KEY');
      if (store === 'S3') {
        expect(log.every(({ request }) => request.headers.authorization === '[redacted]')).toBeTrue();
      }
    });
  }
}
