import { eq } from 'drizzle-orm';
import { recordOwnUse } from '../../../db/own-secret-uses.ts';
import { connectionRuns, type RunRow } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import { reportLineage } from '../../queue/jobs.ts';
import { endOf, type LineageType, runEvent } from './run-event.ts';

const LOOK_AGAIN_SECONDS = 5;
const ANSWER_WITHIN_MS = 10_000;
/** With growing pauses of up to five minutes, about a day. */
const MAX_TRIES = 300;
const MAX_PAUSE_SECONDS = 300;

type Job = { connection_run_id: string; stage: 'start' | 'end'; tries: number };

/** Queues the report of a run that begins, in the transaction of its first claim, where OPENLINEAGE_URL is set. */
export async function requestLineage(db: Db, { config, queue }: Deps, connection_run_id: string): Promise<void> {
  if (config.OPENLINEAGE_URL !== null) await queue.send(db, reportLineage, first(connection_run_id));
}

const first = (connection_run_id: string): Job => ({ connection_run_id, stage: 'start', tries: 0 });

/**
 * Handler of the job `report_lineage`: sends the start of a run, waits for its end and sends that. Apart from the run, so
 * that a receiver that is away costs it nothing. Each event arrives at least once, or a warning says that it did not.
 */
export async function reportLineageJob(deps: Deps, job: Job): Promise<void> {
  const { db, queue } = deps;
  const [run] = await db.select().from(connectionRuns).where(eq(connectionRuns.id, job.connection_run_id));
  if (!run) return;
  const type = job.stage === 'start' ? 'START' : endOf(run);
  if (type === null) return queue.send(db, reportLineage, job, { start_after: LOOK_AGAIN_SECONDS });
  try {
    await post(deps, run, type);
  } catch (error) {
    return again(deps, job, error);
  }
  if (job.stage === 'start') await queue.send(db, reportLineage, { ...job, stage: 'end', tries: 0 });
}

async function again({ db, queue, log }: Deps, job: Job, error: unknown): Promise<void> {
  const tries = job.tries + 1;
  const { connection_run_id, stage } = job;
  const line = { err: error, connection_run_id, stage, tries };
  if (tries >= MAX_TRIES) return log.error(line, 'lineage of a run was not accepted and is given up');
  log.warn(line, 'lineage of a run was not accepted');
  await queue.send(db, reportLineage, { ...job, tries }, { start_after: Math.min(MAX_PAUSE_SECONDS, 2 ** tries) });
}

async function post({ db, config, now }: Deps, run: RunRow, type: LineageType): Promise<void> {
  const { OPENLINEAGE_URL, OPENLINEAGE_API_KEY, OPENLINEAGE_NAMESPACE, PUBLIC_URL } = config;
  const event = await runEvent(db, run, { type, producer: PUBLIC_URL, namespace: OPENLINEAGE_NAMESPACE });
  const { host } = new URL(OPENLINEAGE_URL!);
  if (OPENLINEAGE_API_KEY !== null) await recordOwnUse(db, { setting: 'OPENLINEAGE_API_KEY', host }, now());
  const response = await fetch(OPENLINEAGE_URL!, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(OPENLINEAGE_API_KEY !== null && { authorization: `Bearer ${OPENLINEAGE_API_KEY}` }),
    },
    body: JSON.stringify(event),
    redirect: 'error',
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`OPENLINEAGE_URL answered ${response.status}. Check the address and the key`);
}
