import { join } from 'node:path';
import type { Logger } from 'pino';

/** The worker's flag: end when standard input does, that is, when the parent is gone, however it went. */
export const UNTIL_STDIN_ENDS = '--until-stdin-ends';

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;
/** A worker that lived that long was healthy: the next pause is the first one again. */
const HEALTHY_MS = 30_000;
const STOP_MS = 30_000;

export interface SupervisedWorker {
  /** Of the worker that runs now; null between two. */
  pid(): number | null;
  /** Lets the worker put its work down, and waits for its end. */
  stop(): Promise<void>;
}

/** Runs one worker process beside this one and starts another when it dies, with growing pauses. */
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
      log.error({ exit_code: code, restart_ms: pause }, 'The worker ended; another one is started');
      await Promise.race([Bun.sleep(pause), stopping]);
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
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
    // Its own session: Ctrl-C on the terminal comes to this process, which tells the worker in its turn.
    detached: true,
  });
}
