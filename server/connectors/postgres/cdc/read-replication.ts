import type {
  ConnectorContext,
  LogLag,
  ReplicatedBatch,
  ReplicationRequest,
  StreamState,
} from '../../contract/connector.ts';
import { StreamsFailed } from '../../contract/replication.ts';
import { PgSession, withSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { followSharedLog } from './shared-log.ts';
import { assertContinued, lowestCursor, membersOf } from './log-members.ts';
import { unpublishTable } from './shared-publication.ts';
import { joinLog } from './join-log.ts';
import { identityOf, publicationRows } from './log-identity.ts';
import { confirmLsn, openLogSession } from './read-log.ts';
import { literal } from '../connection/sql.ts';
import { snapshotOf } from '../read/read-transaction.ts';
import { dropPublication, dropSlot, slotName } from './replication-slots.ts';
import { assertLogical } from './table-shape.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

/**
 * Reads several tables by change data capture, from one slot and one publication. Each stream has a state of its own, as
 * if it were read alone: `cursor` is the LSN before which every commit has been read. So a run may read some of them,
 * and a stream that failed continues from where it stopped while the slot keeps the log for it.
 */
export async function* readReplication(ctx: Context, request: ReplicationRequest): AsyncGenerator<ReplicatedBatch> {
  const name = slotName(request.reader_id);
  const members = await prepared(ctx, request);
  yield* joinLog(ctx, { name, members });
  yield* followSharedLog(ctx, { ...request, name, members });
}

async function prepared(ctx: Context, request: ReplicationRequest) {
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    await assertLogical(session);
    // Before the end of the log is looked up: what is visible now has been logged.
    const snapshot = await snapshotOf(session);
    for (const { onSnapshot } of request.streams) onSnapshot?.(snapshot);
    const members = await membersOf(session, request);
    // Before tables are read in full. Without any, the same is checked when the log is opened.
    const joining = members.filter(({ place }) => place !== 'log');
    if (joining.length > 0 && joining.length < members.length) {
      const replication = await openLogSession(ctx);
      const publication = await publicationRows(session, slotName(request.reader_id));
      try {
        await assertContinued(session, replication, { members, publication });
      } finally {
        await replication.close();
      }
    }
    return members;
  } catch (error) {
    throw error instanceof StreamsFailed ? error : session.translate(error);
  } finally {
    await session.close();
  }
}

/** Confirms the lowest position, and drops slots that streams of the replication had alone. @returns the lag */
export async function confirmReplication(
  ctx: Context,
  { reader_id, streams }: ReplicationRequest,
  states: readonly StreamState[],
): Promise<LogLag> {
  const name = slotName(reader_id);
  const joined = streams.filter(({ state }) => identityOf(state)?.slot === name);
  const own = joined.map((request) => slotName(request.reader_id!));
  await withSession(ctx, { phase: 'run' }, async (session) => {
    const { rows } = await session.query(
      `select slot_name from pg_replication_slots where slot_name in (${own.map(literal).join(', ') || 'null'})`,
    );
    for (const [found] of rows) {
      await dropSlot(session, found!);
      await dropPublication(session, found!);
    }
  });
  return confirmLsn(ctx, name, { cursor: lowestCursor(states) });
}

export const leaveReplication = (
  ctx: Context,
  reader_id: string,
  table: { namespace: string | null; name: string },
): Promise<void> =>
  withSession(ctx, { phase: 'run' }, (session) => unpublishTable(session, slotName(reader_id), table));
