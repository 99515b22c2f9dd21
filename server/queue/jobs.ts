import { z } from 'zod';

/** A kind of background job. The payload contains ids only: a job reads the current state from the database. */
export interface JobDefinition<Payload> {
  name: string;
  payload: z.ZodType<Payload>;
  /** Number of retries if the handler throws or its worker dies. */
  retry_limit: number;
  /** A worker without a heartbeat for this long counts as dead. pg-boss requires at least 10. */
  heartbeat_seconds: number;
  /** Number of jobs that one worker process runs at once; null: WORKER_CONCURRENCY. */
  concurrency: number | null;
  /** Jobs of other accounts never delay an account that has no job running. Such jobs are sent with `account_id`. */
  fair_to_accounts: boolean;
}

const define = <Payload>(definition: JobDefinition<Payload>) => definition;

/** Moves one stream of a run. Handled by transfer/execute-stream.ts. */
export const executeStream = define({
  name: 'execute_stream',
  payload: z.object({ stream_run_id: z.string() }),
  retry_limit: 50,
  heartbeat_seconds: 10,
  concurrency: null,
  fair_to_accounts: true,
});

/** Opens the snapshot that the streams of a run share. The worker holds it after the job. */
export const keepSnapshot = define({
  name: 'keep_snapshot',
  payload: z.object({ connection_run_id: z.string() }),
  retry_limit: 2,
  heartbeat_seconds: 10,
  concurrency: 1,
  fair_to_accounts: false,
});

/** Publishes the tables that the streams of a run have completed, or removes those of a run that has ended. */
export const publishTables = define({
  name: 'publish_tables',
  payload: z.object({ connection_run_id: z.string() }),
  retry_limit: 50,
  heartbeat_seconds: 10,
  concurrency: 2,
  fair_to_accounts: false,
});

/** Discovers a catalog or exports metadata. Handled by worker/background-tasks.ts. */
export const executeTask = define({
  name: 'execute_task',
  payload: z.object({ task_id: z.string() }),
  retry_limit: 2,
  heartbeat_seconds: 10,
  concurrency: 2,
  fair_to_accounts: true,
});

/** Carries out one action of one firing. Handled by automation/delivery/deliver.ts, which also plans further attempts. */
export const deliverAction = define({
  name: 'deliver_action',
  payload: z.object({ delivery_id: z.string() }),
  retry_limit: 50,
  heartbeat_seconds: 10,
  concurrency: 4,
  fair_to_accounts: false,
});

/** Compares the streams of a connection with their tables. Handled by transfer/verification/verify-connection.ts. */
export const verifyConnection = define({
  name: 'verify_connection',
  payload: z.object({ verification_id: z.string() }),
  retry_limit: 2,
  heartbeat_seconds: 10,
  concurrency: 1,
  fair_to_accounts: false,
});

/** Reports the start and the end of a run to OPENLINEAGE_URL. Handled by transfer/lineage/report-lineage.ts. */
export const reportLineage = define({
  name: 'report_lineage',
  payload: z.object({ connection_run_id: z.string(), stage: z.enum(['start', 'end']), tries: z.number() }),
  retry_limit: 50,
  heartbeat_seconds: 30,
  concurrency: 2,
  fair_to_accounts: false,
});

export const ALL_JOBS = [
  executeStream,
  keepSnapshot,
  publishTables,
  executeTask,
  deliverAction,
  verifyConnection,
  reportLineage,
] as const;
