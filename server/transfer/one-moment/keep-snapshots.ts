import { setTimeout as sleep } from 'node:timers/promises';
import { eq } from 'drizzle-orm';
import { accountConnectors, connectionRuns, connections, streamRuns } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import { presentable, UNRECORDED } from '../../connector-runtime/account-connector-calls.ts';
import { openConnector } from '../../connector-runtime/open-connector.ts';
import { ConnectorError } from '../../connectors/contract/errors.ts';
import type { AnySource, SnapshotKeeper } from '../../connectors/contract/connector.ts';
import type { Deps } from '../../deps.ts';
import { periodic } from '../../platform/periodic.ts';
import { useOfRun } from '../use-of-run.ts';
import { claimKeeper, type KeeperClaim, restartKeeper } from '../../runs/snapshot/claim-keeper.ts';
import { isGrouped, isKeptInProcess } from '../../runs/snapshot/members.ts';
import {
  keepAlive,
  recordOpening,
  recordSnapshot,
  recordUnavailable,
  releaseKeeper,
} from '../../runs/snapshot/keeper.ts';
import { storedError } from './stored-error.ts';

const HEARTBEAT_MS = 1000;

export interface SnapshotKeepers {
  /** Handler of the job `keep_snapshot`. Resolves when the snapshot is open; it is held until the run has been read. */
  keep(connection_run_id: string): Promise<void>;
  /** Opens the snapshot of a claim, and holds it as above. @returns an error that may pass */
  hold(claim: KeeperClaim): Promise<ConnectorError | null>;
  /** Lets go of all snapshots. Other workers open new ones. */
  stop(): Promise<void>;
}

/** The snapshots that this worker holds for the streams of runs, wherever those are read. */
export function createSnapshotKeepers(deps: Deps): SnapshotKeepers {
  const stopping = new AbortController();
  const held = new Set<Promise<void>>();
  const hold = async (claim: KeeperClaim) => {
    if (stopping.signal.aborted) return null;
    const opened = await open(deps, claim);
    if (opened === null || opened instanceof ConnectorError) return opened;
    const ended = watch(deps, { claim, ...opened }, stopping.signal).finally(() => held.delete(ended));
    held.add(ended);
    return null;
  };
  return {
    hold,
    async keep(connection_run_id) {
      const { worker_id, queue } = deps;
      const claim = await deps.db.transaction(async (tx) => {
        const inProcess = isKeptInProcess({ source: await sourceOf(tx, connection_run_id) });
        if (!inProcess) return claimKeeper(tx, queue, { connection_run_id, worker_id });
        // Their worker opens it.
        await restartKeeper(tx, queue, connection_run_id);
        return null;
      });
      if (claim) await hold(claim);
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

/** The source could not be opened: an error that may pass, after which another job tries it again, or null. */
async function open(deps: Deps, claim: KeeperClaim): Promise<Opened | ConnectorError | null> {
  const source = await sourceOf(deps.db, claim.run.id);
  const waiting = periodic(() => recordOpening(deps.db, claim), {
    every_ms: HEARTBEAT_MS,
    onError: (error) => deps.log.warn({ err: error }, 'heartbeat of a snapshot failed'),
  });
  const abort = new AbortController();
  const cleanUps: (() => Promise<void>)[] = [];
  let failed: ConnectorError | null = null;
  const close = async () => {
    abort.abort();
    await Promise.allSettled(cleanUps.map((work) => work()));
  };
  const hooks = { recorder: UNRECORDED, signal: abort.signal, warn: () => {}, rateLimited: () => {} };
  try {
    const cleanUp = (work: () => Promise<void>) => void cleanUps.push(work);
    const { connector, ctx } = await openConnector(deps, source, { ...hooks, cleanUp, use: useOfRun(claim.run) });
    const { tables, readers } = await wantedOf(deps, claim);
    const keeper = await (connector as AnySource).keepSnapshot!(ctx, tables, readers);
    if (await recordSnapshot(deps.db, claim, keeper.snapshot)) return { keeper, close };
    await keeper.close();
  } catch (thrown) {
    const error = presentable(deps, source, thrown);
    deps.log.warn({ err: error, connection_run_id: claim.run.id }, 'snapshot could not be opened');
    if (error.retryable) {
      failed = error;
      await releaseKeeper(deps.db, deps.queue, claim, false);
    } else await recordUnavailable(deps.db, claim, storedError(error, 'source'));
  } finally {
    await waiting.stop();
  }
  await close();
  return failed;
}

async function sourceOf(db: Db, connection_run_id: string) {
  const [found] = await db
    .select({ source: accountConnectors })
    .from(connectionRuns)
    .innerJoin(connections, eq(connections.id, connectionRuns.connection_id))
    .innerJoin(accountConnectors, eq(accountConnectors.id, connections.source_id))
    .where(eq(connectionRuns.id, connection_run_id));
  if (!found) throw new Error(`source of run ${connection_run_id} does not exist`);
  return found.source;
}

async function wantedOf({ db }: Deps, { run }: KeeperClaim) {
  const streams = await db.select().from(streamRuns).where(eq(streamRuns.connection_run_id, run.id));
  const [{ slots } = { slots: 1 }] = await db
    .select({ slots: connections.max_parallel_streams })
    .from(connections)
    .where(eq(connections.id, run.connection_id));
  const tables = streams.filter(isGrouped).map(({ namespace, stream_name }) => ({ namespace, name: stream_name }));
  return { tables, readers: Math.min(slots, tables.length) };
}

/** Checks the snapshot until no stream needs it, it is lost, or the worker stops. Never rejects. */
async function watch(
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
