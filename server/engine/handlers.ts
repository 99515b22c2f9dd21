import type { Deps } from '../deps.ts';
import { startEvaluator } from '../events/evaluate-loop.ts';
import { deliverAction, executeStream, executeTask } from '../queue/jobs.ts';
import { startChores } from './chores.ts';
import { deliverActionJob } from './deliver.ts';
import { executeStreamJob, nudgeRun } from './execute-stream.ts';
import { STOP_CHANNEL } from './lifecycle.ts';
import { startScheduler } from './scheduler.ts';
import { startSweeper } from './sweeper.ts';
import { executeTaskJob } from './tasks.ts';
import { watchChangeReaders } from './watch-change-readers.ts';

/** Makes this process a worker: it takes jobs, listens for stops, and looks after runs that nobody brings to an end. */
export async function startWorker(deps: Deps): Promise<{ stop(): Promise<void> }> {
  const listening = await deps.database.listen(STOP_CHANNEL, nudgeRun);
  const concurrency = deps.config.WORKER_CONCURRENCY;
  await deps.queue.work(executeStream, concurrency, ({ stream_run_id }, signal) =>
    executeStreamJob(deps, stream_run_id, signal),
  );
  await deps.queue.work(executeTask, executeTask.concurrency ?? concurrency, ({ task_id }) =>
    executeTaskJob(deps, task_id),
  );
  const evaluator = await startEvaluator(deps);
  await deps.queue.work(deliverAction, deliverAction.concurrency ?? concurrency, ({ delivery_id }, signal) =>
    deliverActionJob(deps, delivery_id, signal),
  );
  const sweeper = startSweeper(deps);
  const scheduler = startScheduler(deps);
  const chores = startChores(deps);
  const readers = watchChangeReaders(deps);
  deps.log.info({ concurrency }, 'worker ready');
  return {
    async stop() {
      await Promise.all([evaluator.stop(), sweeper.stop(), scheduler.stop(), chores.stop(), readers.stop()]);
      await deps.queue.stop();
      await listening.unlisten();
    },
  };
}
