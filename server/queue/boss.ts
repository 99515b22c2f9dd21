import { sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import { fromDrizzle, PgBoss } from 'pg-boss';
import type { Db } from '../../db/types.ts';
import { ALL_JOBS, type JobDefinition } from './jobs.ts';

export interface SendOptions {
  /** Not before this instant. */
  start_after?: Date;
  /** Whose work it is, for jobs that are shared out among accounts. */
  account_id?: string;
}

/** The queue. `send` is part of the caller's transaction when `db` is one. */
export interface Queue {
  send<Payload extends object>(
    db: Db,
    job: JobDefinition<Payload>,
    payload: Payload,
    options?: SendOptions,
  ): Promise<void>;
  /**
   * Runs `handler` for each job, `concurrency` at once in this process; beside them, if the job is fair to accounts, one
   * of an account that has none running anywhere. `signal` ends with the worker or the claim.
   */
  work<Payload extends object>(
    job: JobDefinition<Payload>,
    concurrency: number,
    handler: (payload: Payload, signal: AbortSignal) => Promise<void>,
  ): Promise<void>;
  /** Takes no more jobs, aborts the signals of the running ones, and waits for their handlers. */
  stop(): Promise<void>;
}

// The heartbeat is what finds a dead worker; the expiry only has to outlive the longest run (24 h).
const EXPIRE_SECONDS = 24 * 3600 - 1;
const STOP_TIMEOUT_MS = 20_000;

/** Opens the queue on the control database. `supervise`: this process looks after dead workers' jobs (workers do). */
export async function openQueue(options: { url: string; log: Logger; supervise: boolean }): Promise<Queue> {
  const { url, log, supervise } = options;
  const boss = new PgBoss({
    connectionString: url,
    application_name: 'data-pipelines queue',
    max: 4,
    useListenNotify: true,
    schedule: false,
    supervise,
    superviseIntervalSeconds: 2,
    monitorIntervalSeconds: 2,
  });
  boss.on('error', (error) => log.error({ err: error }, 'queue'));
  boss.on('warning', (warning) => log.warn({ warning }, 'queue'));
  await boss.start();
  for (const job of ALL_JOBS) await declareQueue(boss, job);

  const stopping = new AbortController();
  return {
    async send(db, job, payload, sendOptions = {}) {
      await boss.send(job.name, job.payload.parse(payload), {
        db: fromDrizzle(db, sql),
        ...(sendOptions.start_after && { startAfter: sendOptions.start_after }),
        ...(sendOptions.account_id !== undefined && { group: { id: sendOptions.account_id } }),
      });
    },
    async work(job, concurrency, handler) {
      for (const slot of slotsOf(job, concurrency)) {
        // One registration a slot: a slot that has just finished asks again at once. Left alone it would sleep out
        // its polling interval after every job (measured: 8 jobs/s with a backlog).
        let worker = '';
        worker = await boss.work(
          job.name,
          { notifyPollingIntervalSeconds: 1, pollingIntervalSeconds: 1, ...slot },
          async (jobs) => {
            try {
              for (const one of jobs) {
                await handler(job.payload.parse(one.data), AbortSignal.any([one.signal, stopping.signal]));
              }
            } finally {
              boss.notifyWorker(worker);
            }
          },
        );
      }
    },
    async stop() {
      stopping.abort(new Error('The worker is shutting down'));
      await boss.stop({ graceful: true, timeout: STOP_TIMEOUT_MS, close: true });
    },
  };
}

/** The spare slot takes no job of an account that has one running, in whatever process. */
const slotsOf = (job: { fair_to_accounts: boolean }, concurrency: number) => [
  ...Array.from({ length: concurrency }, () => ({})),
  ...(job.fair_to_accounts ? [{ groupConcurrency: 1 }] : []),
];

async function declareQueue(boss: PgBoss, job: JobDefinition<object>): Promise<void> {
  const settings = {
    notify: true,
    retryLimit: job.retry_limit,
    retryDelay: 0,
    heartbeatSeconds: job.heartbeat_seconds,
    expireInSeconds: EXPIRE_SECONDS,
    deleteAfterSeconds: 3600,
  };
  await boss.createQueue(job.name, settings);
  await boss.updateQueue(job.name, settings);
}
