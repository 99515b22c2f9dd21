import { join } from 'node:path';
import { afterAll } from 'bun:test';
import { workerCommand } from '../../server/worker/worker-command.ts';
import type { TestDeps } from './database.ts';
import { watchOver } from './watchdog.ts';

const MAIN = join(import.meta.dir, '../../server/main.ts');

/** A worker in a separate process on the test's database, as an operator would start one on another machine. */
export const spawnWorker = (service: TestDeps, env: Record<string, string> = {}) => spawnPart(service, 'worker', env);

/** The same for any part: `api` or `worker`. `on`: the command that runs it somewhere else. */
export function spawnPart(
  { deps, url }: Pick<TestDeps, 'deps' | 'url'>,
  part: string,
  env: Record<string, string> = {},
  on: string[] = [],
): Bun.Subprocess {
  const { DATA_DIR, SECRET_KEY, OBJECT_STORE_URL } = deps.config;
  // Without a supervisor, so that a kill hits the worker itself.
  const command = part === 'worker' ? workerCommand() : [process.execPath, MAIN, part];
  const child = Bun.spawn([...on, ...command], {
    env: {
      ...process.env,
      DATABASE_URL: url,
      DATA_DIR,
      SECRET_KEY,
      OBJECT_STORE_URL,
      RETRY_BACKOFF_SECONDS: '0',
      LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
      PORT: '0',
      DEMO: '0',
      ...env,
    },
    stdin: 'pipe',
    stdout: 'ignore',
    stderr: 'inherit',
  });
  watchOver(child);
  afterAll(() => child.kill('SIGKILL'));
  return child;
}
