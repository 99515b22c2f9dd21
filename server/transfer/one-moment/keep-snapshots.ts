import { setTimeout as sleep } from 'node:timers/promises';
import { eq } from 'drizzle-orm';
import { accountConnectors, connections, streamRuns } from '../../../db/schema/index.ts';
import { presentable, UNRECORDED } from '../../connector-runtime/account-connector-calls.ts';
import { openConnector } from '../../connector-runtime/open-connector.ts';
import type { AnySource, SnapshotKeeper } from '../../connectors/contract/connector.ts';
import type { Deps } from '../../deps.ts';
import { useOfRun } from '../use-of-run.ts';
import {
  claimKeeper,
  isGrouped,
  keepAlive,
  type KeeperClaim,
  recordSnapshot,
  recordUnavailable,
  releaseKeeper,
} from '../../runs/shared-snapshot.ts';
import { storedError } from './stored-error.ts';

const HEARTBEAT_MS = 1000;

export interface SnapshotKeepers {
  /** Handler of the job `keep_snapshot`. Resolves when the snapshot is open; it is held until the run has been read. */
  keep(connection_run_id: string): Promise<void>;
  /** Lets go of all snapshots. Other workers open new ones. */
  stop(): Promise<void>;
}

/** The snapshots that this worker holds for the streams of runs, wherever those are read. */
export function createSnapshotKeepers(deps: Deps): SnapshotKeepers {
  const stopping = new AbortController();
  const held = new Set<Promise<void>>();
  return {
    async keep(connection_run_id) {
      const { worker_id, queue } = deps;
      const claim = await deps.db.transaction((tx) => claimKeeper(tx, queue, { connection_run_id, worker_id }));
      if (!claim || stopping.signal.aborted) return;
      const opened = await open(deps, claim);
      if (!opened) return;
      const ended = hold(deps, { claim, ...opened }, stopping.signal).finally(() => held.delete(ended));
      held.add(ended);
    },
    async stop() {
      stopping.abort();
      await Promise.all(held);
    },
  };
}

interface Opened {
  keeper: SnapshotKeeper;
  close(): Promise<void>;
}

/** Null: the source could not be opened. Where that may pass, another job tries it again. */
async function open(deps: Deps, claim: KeeperClaim): Promise<Opened | null> {
  const source = await sourceOf(deps, claim);
  const abort = new AbortController();
  const cleanUps: (() => Promise<void>)[] = [];
  const close = async () => {
    abort.abort();
    await Promise.allSettled(cleanUps.map((work) => work()));
  };
  const hooks = { recorder: UNRECORDED, signal: abort.signal, warn: () => {}, rateLimited: () => {} };
  try {
    const cleanUp = (work: () => Promise<void>) => void cleanUps.push(work);
    const { connector, ctx } = await openConnector(deps, source, { ...hooks, cleanUp, use: useOfRun(claim.run) });
    const keeper = await (connector as AnySource).keepSnapshot!(ctx, await tablesOf(deps, claim));
    if (await recordSnapshot(deps.db, claim, keeper.snapshot)) return { keeper, close };
    await keeper.close();
  } catch (thrown) {
    const error = presentable(deps, source, thrown);
    deps.log.warn({ err: error, connection_run_id: claim.run.id }, 'snapshot could not be opened');
    if (error.retryable) await releaseKeeper(deps.db, deps.queue, claim, false);
    else await recordUnavailable(deps.db, claim, storedError(error, 'source'));
  }
  await close();
  return null;
}

async function sourceOf(deps: Deps, { run }: KeeperClaim) {
  const [found] = await deps.db
    .select({ source: accountConnectors })
    .from(connections)
    .innerJoin(accountConnectors, eq(accountConnectors.id, connections.source_id))
    .where(eq(connections.id, run.connection_id));
  if (!found) throw new Error(`source of run ${run.id} does not exist`);
  return found.source;
}

async function tablesOf(deps: Deps, { run }: KeeperClaim) {
  const streams = await deps.db.select().from(streamRuns).where(eq(streamRuns.connection_run_id, run.id));
  return streams.filter(isGrouped).map(({ namespace, stream_name }) => ({ namespace, name: stream_name }));
}

/** Checks the snapshot until no stream needs it, it is lost, or the worker stops. Never rejects. */
async function hold(
  deps: Deps,
  { claim, keeper, close }: Opened & { claim: KeeperClaim },
  stopping: AbortSignal,
): Promise<void> {
  let lost = false;
  try {
    for (let needed = true; needed && !stopping.aborted; ) {
      await sleep(HEARTBEAT_MS, undefined, { signal: stopping }).catch(() => {});
      if (stopping.aborted) break;
      await keeper.check().catch((error: unknown) => {
        lost = true;
        throw error;
      });
      needed = await keepAlive(deps.db, claim).catch((error: unknown) => {
        // The control database may be away for a moment. If for longer, another worker opens a new snapshot.
        deps.log.warn({ err: error }, 'heartbeat of a snapshot failed');
        return true;
      });
    }
  } catch (error) {
    deps.log.warn({ err: error, connection_run_id: claim.run.id }, 'snapshot was lost');
  }
  await keeper.close().catch(() => {});
  await close();
  const again = lost || stopping.aborted;
  await releaseKeeper(deps.db, deps.queue, claim, again).catch((error: unknown) =>
    deps.log.warn({ err: error }, 'snapshot could not be released'),
  );
}
