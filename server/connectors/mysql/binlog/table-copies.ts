import type { Batch, ConnectorContext, ReplicationRequest, TableCopies } from '../../contract/connector.ts';
import { StreamsFailed } from '../../contract/replication.ts';
import { MysqlSession, withSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';
import { contains } from './gtid.ts';
import { assertLogged, currentPosition, oldestPosition } from './log-server.ts';
import { type Member, membersOf, stateOf, statePosition } from './log-members.ts';
import { openSnapshot, type SnapshotPosition, wholeTable } from './snapshot.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

/** Whether the log continues from all of these streams. */
export async function canCopy(ctx: Context, { streams }: ReplicationRequest): Promise<boolean> {
  return withSession(ctx, { phase: 'run' }, async (session) => {
    const oldest = await oldestPosition(session);
    return streams.every(({ state }) => {
      const position = statePosition(state);
      return position !== null && contains(position, oldest);
    });
  });
}

/** Each table is read from a snapshot of its own: sessions cannot share one, and each stream joins at its own position. */
export async function copyTables(ctx: Context, request: ReplicationRequest): Promise<TableCopies> {
  const session = await MysqlSession.open(ctx, { phase: 'run' });
  try {
    await assertLogged(session, ctx.config.database);
    const members = await membersOf(session, request);
    const position = await currentPosition(session);
    const found = new Map<number, SnapshotPosition>();
    return {
      read: (stream) => readOne(ctx, members[stream]!, (snapshot) => found.set(stream, snapshot)),
      // Until the snapshot is open: what is before it.
      state: (stream) => {
        const snapshot = found.get(stream);
        return stateOf(snapshot?.position ?? position, snapshot?.file ?? null);
      },
      close: async () => {},
    };
  } catch (error) {
    throw error instanceof StreamsFailed ? error : session.translate(error);
  } finally {
    await session.close();
  }
}

async function* readOne(
  ctx: Context,
  member: Member,
  onOpen: (snapshot: SnapshotPosition) => void,
): AsyncGenerator<Batch> {
  const session = await MysqlSession.open(ctx, { phase: 'run' });
  try {
    onOpen(await openSnapshot(ctx, session, [{ ...member, position: null }]));
    yield* wholeTable(ctx, session, member.request);
  } catch (error) {
    throw error instanceof StreamsFailed ? [...error.failures.values()][0] : session.translate(error);
  } finally {
    await session.close();
  }
}
