import { z } from 'zod';

/** A kind of background work. The payload holds ids only: the truth is in the database when the job starts. */
export interface JobDefinition<Payload> {
  name: string;
  payload: z.ZodType<Payload>;
  /** Tries again that many times when the handler throws or its worker dies. */
  retry_limit: number;
  /** A worker that gives no sign for that long is taken for dead; pg-boss allows 10 at the least. */
  heartbeat_seconds: number;
  /** Jobs that one worker process runs at once; null: WORKER_CONCURRENCY. */
  concurrency: number | null;
  /** Nobody's jobs keep those of an account waiting that has none running; they are sent with its id. */
  fair_to_accounts: boolean;
}

const define = <Payload>(definition: JobDefinition<Payload>) => definition;

/** Moves one stream of a run. Handled by engine/execute-stream.ts. */
export const executeStream = define({
  name: 'execute_stream',
  payload: z.object({ stream_run_id: z.string() }),
  retry_limit: 50,
  heartbeat_seconds: 10,
  concurrency: null,
  fair_to_accounts: true,
});

/** Runs a task row: catalog discovery, metadata export. */
export const executeTask = define({
  name: 'execute_task',
  payload: z.object({ task_id: z.string() }),
  retry_limit: 2,
  heartbeat_seconds: 10,
  concurrency: 2,
  fair_to_accounts: true,
});

/** Carries out one action of one firing. Handled by engine/deliver.ts, which also plans the further attempts. */
export const deliverAction = define({
  name: 'deliver_action',
  payload: z.object({ delivery_id: z.string() }),
  retry_limit: 50,
  heartbeat_seconds: 10,
  concurrency: 4,
  fair_to_accounts: false,
});

export const ALL_JOBS = [executeStream, executeTask, deliverAction] as const;
