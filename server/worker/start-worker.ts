import type { Deps } from '../deps.ts';
import { startEvaluator } from '../automation/evaluation/evaluation-loop.ts';
import {
  deliverAction,
  executeStream,
  executeTask,
  type JobDefinition,
  keepSnapshot,
  publishTables,
  reportLineage,
  verifyConnection,
} from '../queue/jobs.ts';
import { createIsolation, type IsolationOptions } from './isolate-stream.ts';
import { startPeriodicJobs } from './periodic-jobs.ts';
import { deliverActionJob } from '../automation/delivery/deliver.ts';
import { createSnapshotKeepers } from '../transfer/one-moment/keep-snapshots.ts';
import { publishTablesJob } from '../transfer/one-moment/publish-tables.ts';
import { reportLineageJob } from '../transfer/lineage/report-lineage.ts';
import { checkForStop, executeStreamJob } from '../transfer/execute-stream.ts';
import { STOP_CHANNEL } from '../runs/stop.ts';
import { startScheduler } from '../runs/schedule-tick.ts';
import { serveMetrics } from './metrics/serve-metrics.ts';
import { executeTaskJob } from './background-tasks.ts';
import { verifyConnectionJob } from '../transfer/verification/verify-connection.ts';
import { watchCdcConsumers } from '../transfer/replication/watch-cdc-consumers.ts';

/** Turns this process into a worker: it executes jobs, listens for stop requests, and runs the periodic jobs. */
export async function startWorker(deps: Deps, options: IsolationOptions = {}): Promise<{ stop(): Promise<void> }> {
  const listening = await deps.database.listen(STOP_CHANNEL, checkForStop);
  const concurrency = deps.config.WORKER_CONCURRENCY;
  const isolate = createIsolation(deps, options);
  const keepers = createSnapshotKeepers(deps);
  const work = <Payload extends object>(
    job: JobDefinition<Payload>,
    handler: (payload: Payload, signal: AbortSignal) => Promise<void>,
  ) => deps.queue.work(job, job.concurrency ?? concurrency, handler);
  await work(executeStream, ({ stream_run_id }, signal) =>
    executeStreamJob(deps, { stream_run_id, isolate, keepers }, signal),
  );
  await work(keepSnapshot, ({ connection_run_id }) => keepers.keep(connection_run_id));
  await work(publishTables, ({ connection_run_id }) => publishTablesJob(deps, connection_run_id));
  await work(executeTask, ({ task_id }) => executeTaskJob(deps, task_id));
  await work(verifyConnection, ({ verification_id }, signal) => verifyConnectionJob(deps, verification_id, signal));
  const evaluator = await startEvaluator(deps);
  await work(deliverAction, ({ delivery_id }, signal) => deliverActionJob(deps, delivery_id, signal));
  if (deps.config.OPENLINEAGE_URL !== null) await work(reportLineage, (job) => reportLineageJob(deps, job));
  const scheduler = startScheduler(deps);
  const jobs = startPeriodicJobs(deps);
  const consumers = watchCdcConsumers(deps);
  const metrics = serveMetrics(deps);
  deps.log.info({ concurrency }, 'worker ready');
  return {
    async stop() {
      await Promise.all([evaluator.stop(), scheduler.stop(), jobs.stop(), consumers.stop(), keepers.stop()]);
      await deps.queue.stop();
      await metrics.stop();
      await listening.unlisten();
    },
  };
}
