import { and, eq, inArray, isNotNull, isNull, ne, notExists, or, sql } from 'drizzle-orm';
import {
  accountConnectors,
  catalogStreams,
  changeReaders,
  connectionRuns,
  connectionStreams,
  connections,
  streamRuns,
} from '../../../db/schema/index.ts';
import { findsAny, type Question } from '../../../db/ask-together.ts';
import type { AnySource } from '../../connectors/contract/connector.ts';
import type { Deps } from '../../deps.ts';
import { isInCatalog } from '../../catalog/store.ts';
import { presentable, withConnector } from '../../connector-runtime/account-connector-calls.ts';
import { emitCdcEvent } from '../../events/stream-events.ts';
import { SYSTEM_ACTOR } from '../../events/emit.ts';
import { LAG_CHECK_SECONDS, pauseForLog, recordLag } from './cdc-consumers.ts';
import { type Periodic, periodic } from '../../platform/periodic.ts';
import { stateSetTo } from '../../runs/set-state.ts';
import { LIVE_STREAM } from '../../pipeline/run-states.ts';
import { stopLiveRuns } from '../../runs/stop.ts';

const EVERY_MS = 5_000;
const WORK = { ms: 30_000, use: { purpose: 'change_log' as const, actor: SYSTEM_ACTOR } };
const FIRST_PAUSE_SECONDS = 10;
const MAX_PAUSE_SECONDS = 3_600;
/** After this many failures in a row it is not a short interruption: the source's log grows, and users must know. */
const ANNOUNCE_AFTER_FAILURES = 3;

/**
 * Looks after what sources keep for CDC consumers. It is released when there will be no more reads: the connection or
 * source is deleted, or the stream is no longer selected or no longer read from the log. Otherwise its lag is measured,
 * also while a run holds it that has not done so for a while, as when its destination waits for a lock. Any number of
 * workers may run this.
 */
export const watchCdcConsumers = (deps: Deps): Periodic =>
  periodic(() => checkCdcConsumers(deps), {
    every_ms: EVERY_MS,
    onError: (error) => deps.log.error({ err: error }, 'CDC consumers could not be checked'),
  });

type Due = Awaited<ReturnType<typeof dueConsumers>>[number];

/** Most installations have none. */
const ANY_CONSUMER: Question = {
  name: 'CDC consumers',
  query: (db) => db.select({ id: changeReaders.stream_id }).from(changeReaders).limit(1),
};

/** One turn of the loop, exported for tests. */
export async function checkCdcConsumers(deps: Deps): Promise<void> {
  if (!(await findsAny(deps.db, ANY_CONSUMER))) return;
  for (const found of await dueConsumers(deps)) {
    const pause = found.is_over ? pauseSeconds(found.reader.failures) : LAG_CHECK_SECONDS;
    // Of several workers, the one whose update succeeds does the work.
    const [mine] = await deps.db
      .update(changeReaders)
      .set({ next_look_at: sql`now() + make_interval(secs => ${pause})` })
      .where(
        and(
          eq(changeReaders.stream_id, found.stream.id),
          eq(changeReaders.next_look_at, found.reader.next_look_at),
          eq(changeReaders.failures, found.reader.failures),
        ),
      )
      .returning();
    if (mine) await (found.is_over ? release(deps, found) : measure(deps, found));
  }
}

const pauseSeconds = (failures: number) => Math.min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 3 ** failures);

/** Whether a consumer will not be read again. */
const isOver = sql<boolean>`(${connections.deleted_at} is not null or ${accountConnectors.deleted_at} is not null
    or not ${connectionStreams.selected} or ${connectionStreams.sync_mode} <> 'incremental'
    or (${catalogStreams.definition} is not null and ${catalogStreams.definition} ->> 'change_log' is distinct from 'true'))`;

/** With what decides whether they are read again. */
const consumers = (db: Deps['db']) =>
  db
    .select({ reader: changeReaders, stream: connectionStreams, source: accountConnectors, is_over: isOver })
    .from(changeReaders)
    .innerJoin(connectionStreams, eq(connectionStreams.id, changeReaders.stream_id))
    .innerJoin(connections, eq(connections.id, connectionStreams.connection_id))
    .innerJoin(accountConnectors, eq(accountConnectors.id, changeReaders.source_id))
    .leftJoin(catalogStreams, isInCatalog(changeReaders.source_id, connectionStreams));

function dueConsumers({ db }: Deps) {
  const liveRuns = db
    .select({ one: sql`1` })
    .from(streamRuns)
    .innerJoin(connectionRuns, eq(connectionRuns.id, streamRuns.connection_run_id))
    .where(
      and(
        or(
          eq(streamRuns.stream_id, changeReaders.stream_id),
          // Streams of a connection can share what the source keeps. Custom runs read without it, and a continuous run
          // hardly ever ends.
          and(
            eq(streamRuns.connection_id, connectionStreams.connection_id),
            isNull(connectionRuns.custom_run_plan_id),
            sql`${connections.schedule} ->> 'type' <> 'continuous'`,
          ),
        ),
        inArray(streamRuns.status, LIVE_STREAM),
      ),
    );
  return consumers(db).where(
    and(
      sql`(${changeReaders.next_look_at} <= now() or (${isOver} and ${changeReaders.failures} = 0))`,
      or(sql`not ${isOver}`, notExists(liveRuns)),
    ),
  );
}

async function release(deps: Deps, { reader, stream, source }: Due): Promise<void> {
  try {
    await withConnector(deps, source, WORK, async ({ connector, ctx }) => {
      const { release: end, replication } = connector as AnySource;
      await end?.(ctx, stream.id);
      if (await isLastOfConnection(deps, stream)) await end?.(ctx, stream.connection_id);
      else await replication?.leave(ctx, stream.connection_id, stream);
    });
  } catch (thrown) {
    const error = presentable(deps, source, thrown);
    const failures = reader.failures + 1;
    await deps.db.transaction(async (tx) => {
      await tx
        .update(changeReaders)
        .set({ failures, error: error.message })
        .where(eq(changeReaders.stream_id, stream.id));
      if (failures !== ANNOUNCE_AFTER_FAILURES) return;
      const summary = `${source.name} still keeps its log for ${stream.name}, although it is no longer read: ${error.message}`;
      await emitCdcEvent(tx, 'change_log_not_released', { stream, summary, error_message: error.message });
    });
    return;
  }
  await deps.db.transaction(async (tx) => {
    await tx.delete(changeReaders).where(eq(changeReaders.stream_id, stream.id));
    // The log that the state refers to is gone: a stream selected again starts from the beginning.
    await tx.update(connectionStreams).set(stateSetTo(null)).where(eq(connectionStreams.id, stream.id));
    const others = tx.select({ one: sql`1` }).from(changeReaders).where(eq(changeReaders.source_id, source.id));
    await tx
      .update(accountConnectors)
      .set({ secrets: null, ssh_tunnel: null })
      .where(and(eq(accountConnectors.id, source.id), isNotNull(accountConnectors.deleted_at), notExists(others)));
  });
}

/**
 * Whether no other stream of the connection will be read from a log: what they have in common at the source can go. Those
 * that are released at the same time, by another worker, do not count, since each would wait for the other.
 */
async function isLastOfConnection({ db }: Deps, stream: Due['stream']): Promise<boolean> {
  const others = await consumers(db)
    .where(
      and(
        eq(connectionStreams.connection_id, stream.connection_id),
        ne(connectionStreams.id, stream.id),
        sql`not ${isOver}`,
      ),
    )
    .limit(1);
  return others.length === 0;
}

async function measure(deps: Deps, { stream, source }: Due): Promise<void> {
  const { connection_id } = stream;
  try {
    await withConnector(deps, source, WORK, async ({ connector, ctx }) => {
      const { lag, release: end } = connector as AnySource;
      const own = await lag?.(ctx, stream.id);
      const found = own ?? (await lag?.(ctx, connection_id));
      if (!found) return;
      const of = own ? { stream_id: stream.id } : { connection_id };
      await deps.db.transaction((tx) => recordLag(tx, of, found));
      if (!found.is_over) return;
      await pauseForLog(deps.db, connection_id, found);
      // Custom runs do not read the log.
      const readers = { connection_id, actor: SYSTEM_ACTOR, reason: 'change_log_limit', plain_only: true };
      const stopped = await deps.db.transaction((tx) => stopLiveRuns(tx, deps.queue, readers));
      // Whoever still reads is looked for again once it has stopped.
      if (stopped === 0) await end?.(ctx, own ? stream.id : connection_id);
    });
  } catch (thrown) {
    deps.log.warn(
      { err: presentable(deps, source, thrown), stream_id: stream.id },
      'lag of a CDC consumer could not be measured',
    );
  }
}
