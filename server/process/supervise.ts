import { join } from 'node:path';
import type { Logger } from 'pino';

/** Flag of the worker: end when standard input ends, which happens however the parent process ends. */
export const UNTIL_STDIN_ENDS = '--until-stdin-ends';

const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 10_000;
/** A worker that ran this long was healthy: the pause starts over. */
const HEALTHY_MS = 30_000;
const STOP_MS = 30_000;

export interface SupervisedWorker {
  /** Process id of the current worker; null between two workers. */
  pid(): number | null;
  /** Stops the worker gracefully and waits for its end. */
  stop(): Promise<void>;
}

/** Runs a worker process and replaces it when it dies, with growing pauses. */
export function superviseWorker(options: { env: Record<string, string | undefined>; log: Logger }): SupervisedWorker {
  const { env, log } = options;
  const stop = new AbortController();
  const stopping = new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()));
  let child: Bun.Subprocess | null = null;

  const keepRunning = async () => {
    let pause = FIRST_PAUSE_MS;
    while (!stop.signal.aborted) {
      const started = performance.now();
      child = spawnWorker(env);
      const code = await child.exited;
      child = null;
      if (stop.signal.aborted) return;
      if (performance.now() - started > HEALTHY_MS) pause = FIRST_PAUSE_MS;
      log.error({ exit_code: code, restart_ms: pause }, 'The worker ended and will be restarted');
      await Promise.race([Bun.sleep(pause), stopping]);
      pause = Math.min(2 * pause, MAX_PAUSE_MS);
    }
  };
  const running = keepRunning();

  return {
    pid: () => child?.pid ?? null,
    stop: async () => {
      stop.abort();
      child?.kill('SIGTERM');
      const killer = setTimeout(() => child?.kill('SIGKILL'), STOP_MS);
      await running;
      clearTimeout(killer);
    },
  };
}

function spawnWorker(env: Record<string, string | undefined>): Bun.Subprocess {
  return Bun.spawn([process.execPath, join(import.meta.dir, '../main.ts'), 'worker', UNTIL_STDIN_ENDS], {
    env,
    stdio: ['pipe', 'inherit', 'inherit'],
    // In a session of its own: Ctrl-C in the terminal reaches only this process, which stops the worker.
    detached: true,
  });
}
