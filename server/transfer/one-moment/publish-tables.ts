import { presentable, withConnector } from '../../connector-runtime/account-connector-calls.ts';
import { redactorOf } from '../../connector-runtime/connector-secrets.ts';
import type { AnyDestination, PublishGroup } from '../../connectors/contract/connector.ts';
import type { StoredWarning } from '../../../db/schema/index.ts';
import type { Deps } from '../../deps.ts';
import { isLiveRun } from '../../pipeline/run-states.ts';
import { periodic } from '../../platform/periodic.ts';
import { recordSuccess } from '../../runs/connector-health.ts';
import { advanceRun } from '../../runs/finish-run.ts';
import { lockRun, warnOfRun } from '../../runs/lock-run.ts';
import {
  claimPublication,
  failPublishing,
  type Publication,
  recordPublishing,
  recordSettled,
  succeedPublished,
} from '../../runs/publish-snapshot.ts';
import { publishWith } from './join-snapshot.ts';
import { storedError } from './stored-error.ts';
import { useOfRun } from '../use-of-run.ts';

const HEARTBEAT_MS = 1000;
/** Tables with views or foreign keys have all their rows replaced. */
const WORK_MS = 6 * 3600_000;

/** Handler of the job `publish_tables`. */
export async function publishTablesJob(deps: Deps, connection_run_id: string): Promise<void> {
  const work = await deps.db.transaction((tx) => claimPublication(tx, connection_run_id));
  if (!work) return;
  const heartbeat = periodic(() => recordPublishing(deps.db, work.run), {
    every_ms: HEARTBEAT_MS,
    onError: (error) => deps.log.warn({ err: error }, 'heartbeat failed'),
  });
  const redactor = redactorOf(deps, [work.destination]);
  const warnings: StoredWarning[] = [];
  const warn = (code: string, message: string) =>
    void warnings.push({ code, message: redactor.text(message), stream_name: null });
  try {
    await withConnector(
      deps,
      work.destination,
      { ms: WORK_MS, use: useOfRun(work.run), warn },
      async ({ connector, ctx }) => {
        const destination = connector as AnyDestination;
        await (work.what === 'publish' ? destination.publish : destination.discard)?.call(
          destination,
          ctx,
          groupOf(work),
        );
      },
    );
  } catch (thrown) {
    await heartbeat.stop();
    return failed(deps, work, thrown);
  }
  await heartbeat.stop();
  await deps.db.transaction(async (tx) => {
    const run = await lockRun(tx, work.run.id);
    await recordSettled(tx, work.run);
    if (!run || !isLiveRun(run.status) || work.what === 'discard') return;
    await warnOfRun(tx, run, warnings);
    await succeedPublished(tx, { run, streams: work.streams });
    await recordSuccess(tx, work);
    await advanceRun(tx, deps.queue, run);
  });
}

function groupOf({ run, connection, generation, streams }: Publication): PublishGroup {
  return {
    connection_id: connection.id,
    schema: connection.destination_schema,
    publish_with: publishWith(run.id, generation),
    streams: streams.map(({ id, stream_id, fence }) => ({
      stream_id: run.custom_run_plan_id === null ? stream_id : id,
      stream_run_id: id,
      fence,
    })),
  };
}

async function failed(deps: Deps, work: Publication, thrown: unknown): Promise<void> {
  const presented = presentable(deps, work.destination, thrown);
  const error = { ...storedError(presented, 'destination'), internal_message: presented.stack ?? null };
  deps.log.warn({ err: thrown, connection_run_id: work.run.id }, `tables of a run could not be ${PAST[work.what]}`);
  const backoff_base_seconds = deps.config.RETRY_BACKOFF_SECONDS;
  await deps.db.transaction(async (tx) => {
    const run = await lockRun(tx, work.run.id);
    if (!run) return;
    await failPublishing(tx, deps.queue, { work: { ...work, run }, error, backoff_base_seconds });
    if (isLiveRun(run.status)) await advanceRun(tx, deps.queue, run);
  });
}

const PAST = { publish: 'published', discard: 'removed' } as const;
