import type { Logger } from 'pino';
import { endText, type ProcessEnd, SILENT_MS, spawnWatched, type WatchedProcess } from '../platform/watched-process.ts';
import { workerCommand } from '../worker/worker-command.ts';

const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 10_000;
/** A worker that ran this long was healthy: the pause starts over. */
const HEALTHY_MS = 30_000;

export interface SupervisedWorker {
  /** Process id of the current worker; null between two workers. */
  pid(): number | null;
  /** Stops the worker gracefully and waits for its end. */
  stop(): Promise<void>;
}

/**
 * Runs a worker process and replaces it when it dies or hangs, with growing pauses. The next worker that gets ready takes
 * up the streams of the dead ones. `onNeverReady`: called once if the first worker ends before it was ready.
 */
export function superviseWorker(options: {
  env: Record<string, string | undefined>;
  log: Logger;
  silent_ms?: number;
  onNeverReady?(end: ProcessEnd): void;
}): SupervisedWorker {
  const { env, log, silent_ms = SILENT_MS, onNeverReady } = options;
  const stop = new AbortController();
  const stopping = new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()));
  let worker: WatchedProcess | null = null;
  let dead: string[] = [];
  let wasReady = false;

  const spawn = (): { id: string; process: WatchedProcess } => {
    const id = Bun.randomUUIDv7();
    const replaces = dead;
    const onReady = () => {
      wasReady = true;
      dead = dead.filter((one) => !replaces.includes(one));
    };
    const command = workerCommand({ worker_id: id, replaces, silent_ms });
    return { id, process: spawnWatched(command, { env, silent_ms, onReady }) };
  };

  const keepRunning = async () => {
    let pause = FIRST_PAUSE_MS;
    while (!stop.signal.aborted) {
      const started = performance.now();
      const { id, process } = spawn();
      worker = process;
      const end = await process.ended;
      worker = null;
      if (stop.signal.aborted) return;
      if (!wasReady && onNeverReady) return onNeverReady(end);
      dead = [...dead, id];
      if (performance.now() - started > HEALTHY_MS) pause = FIRST_PAUSE_MS;
      log.error({ ...end, restart_ms: pause }, `The worker ${endText(end, silent_ms)} and will be restarted`);
      await Promise.race([Bun.sleep(pause), stopping]);
      pause = Math.min(2 * pause, MAX_PAUSE_MS);
    }
  };
  const running = keepRunning();

  return {
    pid: () => worker?.pid ?? null,
    stop: async () => {
      stop.abort();
      await worker?.stop();
      await running;
    },
  };
}
