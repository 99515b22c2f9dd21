import { migrateDatabase } from '../../db/migrate.ts';
import { closeDeps, createDeps } from '../deps.ts';
import type { Config } from '../platform/config.ts';
import { shrinkWhenIdle } from '../platform/memory/shrink-when-idle.ts';
import { within } from '../platform/tracing/span.ts';
import { sendHeartbeats } from '../platform/watched-process.ts';
import { releaseDeadWorkers } from '../runs/worker-deaths.ts';
import { attemptAlone } from '../transfer/execute-stream.ts';
import { startWorker } from '../worker/start-worker.ts';
import type { WorkerFlags } from '../worker/worker-command.ts';
import { SILENT_AT_END, type Shutdown } from './shutdown.ts';

/** A control database that restarts is back within this time. */
const DATABASE_WAIT_MS = 60_000;

/** Runs a worker process that ends with its parent: a whole worker, or one stream alone. */
export async function runWorker(
  config: Config,
  options: { url: string; flags: WorkerFlags; shutdown: Shutdown },
): Promise<void> {
  const { url, flags, shutdown } = options;
  const heartbeats = sendHeartbeats();
  void untilStdinEnds().then(() => shutdown.end(0));
  await migrateDatabase(url, { wait_ms: DATABASE_WAIT_MS });
  const deps = await createDeps(config, url, 'worker', flags.worker_id);
  shutdown.onEnd(() => closeDeps(deps));
  shutdown.giveUpWhen(() => deps.database.untilUnresponsive(SILENT_AT_END));
  const { stream_run_id, traceparent } = flags;
  if (stream_run_id !== null) {
    const stopping = new AbortController();
    const span = deps.tracing.begin('execute_stream alone', { traceparent });
    const attempt = within(span, () => attemptAlone(deps, stream_run_id, stopping.signal));
    shutdown.onEnd(async () => {
      stopping.abort();
      await attempt;
    });
    await attempt;
    await shutdown.end(0);
  }
  await releaseDeadWorkers(deps, flags.replaces);
  const worker = await startWorker(deps, flags);
  shutdown.onEnd(() => worker.stop());
  const shrinking = shrinkWhenIdle();
  shutdown.onEnd(() => shrinking.stop());
  heartbeats.ready();
}

async function untilStdinEnds(): Promise<void> {
  const reader = Bun.stdin.stream().getReader();
  while (!(await reader.read()).done) continue;
}
