import { join } from 'node:path';
import { afterAll } from 'bun:test';
import type { TestDeps } from './database.ts';

const MAIN = join(import.meta.dir, '../../server/main.ts');

/** A worker of its own process on the test's database, as an operator would start one on another machine. */
export function spawnWorker({ deps, url }: TestDeps, env: Record<string, string> = {}): Bun.Subprocess {
  const { DATA_DIR, SECRET_KEY, OBJECT_STORE_URL } = deps.config;
  const worker = Bun.spawn([process.execPath, MAIN, 'worker'], {
    env: {
      ...process.env,
      DATABASE_URL: url,
      DATA_DIR,
      SECRET_KEY,
      OBJECT_STORE_URL,
      RETRY_BACKOFF_SECONDS: '0',
      LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'error',
      ...env,
    },
    stdin: 'ignore',
    stdout: 'inherit',
    stderr: 'inherit',
  });
  afterAll(() => worker.kill('SIGKILL'));
  return worker;
}
