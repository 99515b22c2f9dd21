import { sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import { fromDrizzle, PgBoss } from 'pg-boss';
import type { Db } from '../../db/types.ts';
import { ALL_JOBS, type JobDefinition } from './jobs.ts';

export interface SendOptions {
  /** The job does not start before this instant, or for this many seconds by the database's clock. */
  start_after?: Date | number;
  /** The account that the job belongs to, for jobs that are `fair_to_accounts`. */
  account_id?: string;
}

/** The job queue. `send` is part of the caller's transaction if `db` is one. */
export interface Queue {
  send<Payload extends object>(
    db: Db,
    job: JobDefinition<Payload>,
    payload: Payload,
    options?: SendOptions,
  ): Promise<void>;
  /**
   * Runs `handler` for each job, up to `concurrency` at once in this process. If the job is `fair_to_accounts`, one more
   * slot takes jobs of accounts that have none running in any process. `signal` is aborted when the worker stops or loses
   * its claim.
   */
  work<Payload extends object>(
    job: JobDefinition<Payload>,
    concurrency: number,
    handler: (payload: Payload, signal: AbortSignal) => Promise<void>,
  ): Promise<void>;
  /** Takes no more jobs, aborts the signals of running ones, and waits for their handlers. */
  stop(): Promise<void>;
}

// Heartbeats detect a dead worker; the expiry only has to exceed the longest run (24 h).
const EXPIRE_SECONDS = 24 * 3600 - 1;
const STOP_TIMEOUT_MS = 20_000;
/** Passed through to the driver. On a server that does not answer, a query would never end. */
const QUERY_LIMITS = { query_timeout: 60_000, statement_timeout: 60_000 };

/** Opens the queue on the control database. `supervise`: this process recovers the jobs of dead workers. */
export async function openQueue(options: { url: string; log: Logger; supervise: boolean }): Promise<Queue> {
  const { url, log, supervise } = options;
  const boss = new PgBoss({
    connectionString: url,
    application_name: 'data-pipelines queue',
    max: 4,
    ...QUERY_LIMITS,
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
        // One registration per slot, so that a slot that has finished a job can ask for the next one at once. Otherwise
        // it would sleep for its polling interval after every job (measured: 8 jobs/s with a backlog).
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

/** The extra slot takes no job of an account that has one running in any process. */
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
