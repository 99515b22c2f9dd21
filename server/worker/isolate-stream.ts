import type { Deps } from '../deps.ts';
import { environmentOf } from '../platform/config.ts';
import { activeSpan } from '../platform/tracing/span.ts';
import { endText, SILENT_MS, spawnWatched } from '../platform/watched-process.ts';
import { recordIsolatedDeath } from '../runs/worker-deaths.ts';
import { postponeStream } from '../transfer/execute-stream.ts';
import { workerCommand } from './worker-command.ts';

/** A stream that lives this long on its own does not hold up the next one any more. */
const ALONE_MS = 60_000;
const POSTPONE_MS = 1_000;

export interface IsolationOptions {
  silent_ms?: number;
}

/**
 * Executes streams that were on a worker when it died: each in a process of its own, so that its death proves which one it
 * is, and started one after the other, so that they do not exhaust the machine together.
 */
export function createIsolation(deps: Deps, { silent_ms = SILENT_MS }: IsolationOptions = {}) {
  let current: string | null = null;
  return async (stream_run_id: string, signal: AbortSignal): Promise<void> => {
    if (current !== null) return postponeStream(deps, stream_run_id, POSTPONE_MS);
    current = stream_run_id;
    const leave = () => {
      if (current === stream_run_id) current = null;
    };
    const timer = setTimeout(leave, ALONE_MS);
    try {
      await executeAlone(deps, { stream_run_id, silent_ms }, signal);
    } finally {
      clearTimeout(timer);
      leave();
    }
  };
}

async function executeAlone(
  deps: Deps,
  { stream_run_id, silent_ms }: { stream_run_id: string; silent_ms: number },
  signal: AbortSignal,
): Promise<void> {
  const worker_id = Bun.randomUUIDv7();
  const env = { ...environmentOf(deps.config, deps.egress.control), WORKER_CONCURRENCY: '1' };
  const traceparent = activeSpan()?.traceparent ?? null;
  const alone = spawnWatched(workerCommand({ worker_id, stream_run_id, traceparent }), { env, silent_ms });
  const stop = () => void alone.stop();
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  const end = await alone.ended;
  signal.removeEventListener('abort', stop);
  if (end.exit_code === 0 || signal.aborted) return;
  const how = endText(end, silent_ms);
  if (await recordIsolatedDeath(deps, { stream_run_id, worker_id, how })) return;
  throw new Error(`The process for stream run ${stream_run_id} ${how} before it claimed the stream`);
}
