import { sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import { fromDrizzle, type Job, PgBoss } from 'pg-boss';
import type { Db } from '../../db/types.ts';
import { type Periodic, periodic } from '../platform/periodic.ts';
import { ALL_JOBS, type JobDefinition } from './jobs.ts';

export interface SendOptions {
  /** The job does not start before this instant, or for this many seconds by the database's clock. */
  start_after?: Date | number;
  /** The account that the job belongs to, for jobs that are `fair_to_accounts`. */
  account_id?: string;
}

/** The jobs of one kind in this process. */
export interface QueueSlots {
  queue: string;
  busy: number;
  all: number;
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
  /** How many jobs of each kind this process runs and can run. */
  slots(): QueueSlots[];
  /** Takes no more jobs, aborts the signals of running ones, and waits for their handlers. */
  stop(): Promise<void>;
}

// Heartbeats detect a dead worker; the expiry only has to exceed the longest run (24 h).
const EXPIRE_SECONDS = 24 * 3600 - 1;
const STOP_TIMEOUT_MS = 20_000;
/** Passed through to the driver. On a server that does not answer, a query would never end. */
const QUERY_LIMITS = { query_timeout: 60_000, statement_timeout: 60_000 };

/**
 * A notification wakes the slots when a job is sent. Jobs that become due later or are retried notify nobody: each second
 * one idle slot of each kind looks for them, and the slot that finds a job wakes the next one. All slots looking each
 * second took 4 % of a processor in an idle worker. Without notifications, every slot looks each second.
 */
const POLLING = { notifyPollingIntervalSeconds: 60, pollingIntervalSeconds: 1 };

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
  const wakers: Periodic[] = [];
  const taken = new Map<string, QueueSlots>();
  return {
    async send(db, job, payload, sendOptions = {}) {
      await boss.send(job.name, job.payload.parse(payload), {
        db: fromDrizzle(db, sql),
        ...(sendOptions.start_after && { startAfter: sendOptions.start_after }),
        ...(sendOptions.account_id !== undefined && { group: { id: sendOptions.account_id } }),
      });
    },
    async work(job, concurrency, handler) {
      const slots = slotsOf(job, concurrency);
      const own = { queue: job.name, busy: 0, all: slots.length };
      taken.set(job.name, own);
      const run = counted(own, async (jobs: Job[]) => {
        for (const one of jobs) {
          await handler(job.payload.parse(one.data), AbortSignal.any([one.signal, stopping.signal]));
        }
      });
      const wakeOne = await openSlots(boss, slots, { name: job.name, run });
      wakers.push(periodic(wakeOne, { every_ms: 1000, onError: (error) => log.error({ err: error }, 'queue') }));
    },
    slots: () => [...taken.values()],
    async stop() {
      stopping.abort(new Error('The worker is shutting down'));
      await Promise.all(wakers.map((waker) => waker.stop()));
      await boss.stop({ graceful: true, timeout: STOP_TIMEOUT_MS, close: true });
    },
  };
}

const counted =
  (own: QueueSlots, run: (jobs: Job[]) => Promise<void>): typeof run =>
  async (jobs) => {
    own.busy += 1;
    try {
      await run(jobs);
    } finally {
      own.busy -= 1;
    }
  };

/** The extra slot takes no job of an account that has one running in any process. */
const slotsOf = (job: { fair_to_accounts: boolean }, concurrency: number) => [
  ...Array.from({ length: concurrency }, () => ({})),
  ...(job.fair_to_accounts ? [{ groupConcurrency: 1 }] : []),
];

/**
 * Registers each slot separately, so that a slot that has finished a job can ask for the next one at once. Otherwise it
 * would sleep for its polling interval after every job (measured: 8 jobs/s with a backlog). Returns what lets one idle
 * slot look for a job.
 */
async function openSlots(
  boss: PgBoss,
  slots: object[],
  { name, run }: { name: string; run: (jobs: Job[]) => Promise<void> },
): Promise<() => Promise<void>> {
  const idle = new Set<string>();
  const wakeOne = async () => {
    const [slot] = idle;
    if (slot !== undefined) boss.notifyWorker(slot);
  };
  for (const slot of slots) {
    let id = '';
    id = await boss.work<object>(name, { ...POLLING, ...slot }, async (jobs) => {
      idle.delete(id);
      await wakeOne();
      try {
        await run(jobs);
      } finally {
        idle.add(id);
        boss.notifyWorker(id);
      }
    });
    idle.add(id);
  }
  return wakeOne;
}

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
