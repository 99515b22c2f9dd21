import { sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import { fromDrizzle, type Job, PgBoss } from 'pg-boss';
import { askTogether, type Question } from '../../db/ask-together.ts';
import type { Db } from '../../db/types.ts';
import { activeSpan, NO_TRACING, type Tracing, within } from '../platform/tracing/span.ts';
import { periodic } from '../platform/periodic.ts';
import { ALL_JOBS, type JobDefinition } from './jobs.ts';
import { prepareRepeated } from './prepare-statements.ts';
import { renewStatistics } from './renew-statistics.ts';
import { STEP_CLOCK } from './step-clock.ts';

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
  /** Sends several jobs of one kind at once. */
  sendAll<Payload extends object>(
    db: Db,
    job: JobDefinition<Payload>,
    sent: readonly { payload: Payload; account_id?: string }[],
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
 * one statement finds their kinds and wakes one idle slot of each, and the slot that takes a job wakes the next one.
 * Without notifications, every slot looks each second.
 */
const POLLING = { notifyPollingIntervalSeconds: 60, pollingIntervalSeconds: 1 };
const LOOK_FOR_DUE_MS = 1000;
const LOOK_FOR_DEAD_MS = 2000;
const LOOK_FOR_GROWTH_MS = 2000;

/**
 * The supervisor of pg-boss scans all jobs several times per pass, which took half of an idle worker's processor time
 * when it also had to find dead workers. It passes once a minute, and at once when a heartbeat is overdue.
 */
const SUPERVISION = { superviseIntervalSeconds: 60, monitorIntervalSeconds: 1, flowIntervalSeconds: 3600 };

/**
 * Opens the queue on the control database. `supervise`: this process recovers the jobs of dead workers. Without `db` it
 * only sends jobs.
 */
export async function openQueue(options: {
  url: string;
  db: Db | null;
  log: Logger;
  supervise: boolean;
  tracing?: Tracing;
}): Promise<Queue> {
  const { db, log, supervise, tracing = NO_TRACING } = options;
  const boss = createBoss(options);
  await boss.start();
  await declareQueues(boss);

  const stopping = new AbortController();
  const kinds = new Map<string, Slots>();
  const taken = new Map<string, QueueSlots>();
  const onError = (error: unknown) => log.error({ err: error }, 'queue');
  const loops =
    supervise && db
      ? [
          periodic(() => recoverJobs(boss, db), { every_ms: LOOK_FOR_DEAD_MS, onError }),
          periodic(() => renewStatistics(db), { every_ms: LOOK_FOR_GROWTH_MS, onError }),
        ]
      : [];
  return {
    send: (tx, job, payload, sendOptions) => sendJob(boss, tx, { job, payload, ...sendOptions }),
    sendAll: (tx, job, sent) => sendJobs(boss, tx, { job, sent }),
    async work(job, concurrency, handler) {
      if (!db) throw new Error(`A queue that only sends jobs does not run ${job.name}`);
      const slots = slotsOf(job, concurrency);
      const own = { queue: job.name, busy: 0, all: slots.length };
      taken.set(job.name, own);
      const run = counted(own, async (jobs: Job[]) => {
        for (const one of jobs) {
          const signal = AbortSignal.any([one.signal, stopping.signal]);
          await within(spanOf(tracing, one), () => handler(job.payload.parse(one.data), signal));
        }
      });
      if (kinds.size === 0) loops.push(periodic(() => wakeDue(db, kinds), { every_ms: LOOK_FOR_DUE_MS, onError }));
      kinds.set(job.name, await openSlots(boss, slots, { name: job.name, run }));
    },
    slots: () => [...taken.values()],
    async stop() {
      stopping.abort(new Error('The worker is shutting down'));
      await Promise.all(loops.map((loop) => loop.stop()));
      await boss.stop({ graceful: true, timeout: STOP_TIMEOUT_MS, close: true });
    },
  };
}

function createBoss({ url, log, supervise }: { url: string; log: Logger; supervise: boolean }): PgBoss {
  const boss = new PgBoss({
    connectionString: url,
    application_name: 'data-pipelines queue',
    max: 4,
    ...QUERY_LIMITS,
    useListenNotify: true,
    schedule: false,
    supervise,
    clock: STEP_CLOCK,
    ...SUPERVISION,
  });
  prepareRepeated(boss.getDb());
  boss.on('error', (error) => log.error({ err: error }, 'queue'));
  boss.on('warning', (warning) => log.warn({ warning }, 'queue'));
  return boss;
}

/** The job carries the trace of what sends it. */
async function sendJob<Payload extends object>(
  boss: PgBoss,
  db: Db,
  { job, payload, start_after, account_id }: SendOptions & { job: JobDefinition<Payload>; payload: Payload },
): Promise<void> {
  await boss.send(job.name, dataOf(job, payload), {
    db: fromDrizzle(db, sql),
    ...(start_after && { startAfter: start_after }),
    ...groupOf(account_id),
  });
}

async function sendJobs<Payload extends object>(
  boss: PgBoss,
  db: Db,
  { job, sent }: { job: JobDefinition<Payload>; sent: readonly { payload: Payload; account_id?: string }[] },
): Promise<void> {
  if (sent.length === 0) return;
  const jobs = sent.map(({ payload, account_id }) => ({ data: dataOf(job, payload), ...groupOf(account_id) }));
  await boss.insert(job.name, jobs, { db: fromDrizzle(db, sql) });
}

function dataOf<Payload extends object>(job: JobDefinition<Payload>, payload: Payload) {
  const traceparent = activeSpan()?.traceparent;
  return { ...job.payload.parse(payload), ...(traceparent && { traceparent }) };
}

const groupOf = (account_id: string | undefined) => account_id !== undefined && { group: { id: account_id } };

/** The span of a job, in the trace of what sent it. */
function spanOf(tracing: Tracing, { id, name, data }: Job) {
  const { traceparent } = data as { traceparent?: unknown };
  const attributes = { 'messaging.system': 'pg-boss', 'messaging.destination.name': name, 'messaging.message.id': id };
  return tracing.begin(name, {
    kind: 'consumer',
    traceparent: typeof traceparent === 'string' ? traceparent : null,
    attributes,
  });
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

/** The slots of one kind of job in this process. */
interface Slots {
  hasIdle(): boolean;
  /** Lets one idle slot look for a job: the one for other accounts if no other is idle. */
  wakeOne(): void;
}

/** The limit keeps a backlog from being read through. */
const DUE_JOBS: Question = {
  name: 'due jobs',
  query: () => sql`
    select kind.name from jsonb_array_elements_text(${sql.placeholder('kinds')}::text::jsonb) as kind(name), lateral (
      select from pgboss.job where job.name = kind.name and job.state < 'active' and not job.blocked
        and job.start_after <= now() limit 1) as due`,
};

/** Wakes a slot of each kind that has a job to run. */
async function wakeDue(db: Db, kinds: ReadonlyMap<string, Slots>): Promise<void> {
  const idle = [...kinds].filter(([, slots]) => slots.hasIdle()).map(([name]) => name);
  if (idle.length === 0) return;
  for (const name of await askTogether<string>(db, DUE_JOBS, { kinds: JSON.stringify(idle) })) {
    kinds.get(name)?.wakeOne();
  }
}

const DEAD_JOBS: Question = {
  name: 'dead jobs',
  query: () => sql`
    select distinct name from pgboss.job where state = 'active'
      and heartbeat_on + heartbeat_seconds * interval '1 second' < now()`,
};

/** Gives the jobs of workers without a heartbeat to others. */
async function recoverJobs(boss: PgBoss, db: Db): Promise<void> {
  for (const name of await askTogether<string>(db, DEAD_JOBS)) await boss.supervise(name);
}

/**
 * Registers each slot separately, so that a slot that has finished a job can ask for the next one at once. Otherwise it
 * would sleep for its polling interval after every job (measured: 8 jobs/s with a backlog).
 */
async function openSlots(
  boss: PgBoss,
  slots: object[],
  { name, run }: { name: string; run: (jobs: Job[]) => Promise<void> },
): Promise<Slots> {
  const idle = { any: new Set<string>(), fair: new Set<string>() };
  const wake = ([slot]: Set<string>) => {
    if (slot !== undefined) boss.notifyWorker(slot);
  };
  for (const slot of slots) {
    const own = 'groupConcurrency' in slot ? idle.fair : idle.any;
    let id = '';
    id = await boss.work<object>(name, { ...POLLING, ...slot }, async (jobs) => {
      own.delete(id);
      // The slot for other accounts has looked when the jobs were sent. Mostly it would find those of this account again.
      wake(idle.any);
      try {
        await run(jobs);
      } finally {
        own.add(id);
        boss.notifyWorker(id);
      }
    });
    own.add(id);
  }
  return {
    hasIdle: () => idle.any.size + idle.fair.size > 0,
    wakeOne: () => wake(idle.any.size > 0 ? idle.any : idle.fair),
  };
}

/** Creates the queues that are missing, and brings settings of earlier versions up to date. */
async function declareQueues(boss: PgBoss): Promise<void> {
  const present = new Map((await boss.getQueues()).map((queue) => [queue.name, queue]));
  for (const job of ALL_JOBS) {
    const settings = {
      notify: true,
      retryLimit: job.retry_limit,
      retryDelay: 0,
      heartbeatSeconds: job.heartbeat_seconds,
      expireInSeconds: EXPIRE_SECONDS,
      deleteAfterSeconds: 3600,
    };
    const known = present.get(job.name);
    if (!known) await boss.createQueue(job.name, settings);
    else if (!Bun.deepEquals({ ...known, ...settings }, known)) await boss.updateQueue(job.name, settings);
  }
}
