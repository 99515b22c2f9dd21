import type { ConnectorContext, ReadRequest, ReplicationRequest, TableCopies } from '../../contract/connector.ts';
import { StreamsFailed } from '../../contract/replication.ts';
import { PgSession, withSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { tableBatches } from '../read/read-rows.ts';
import { beginAt, exportSnapshot } from '../read/shared-snapshot.ts';
import { type Join, tableFormats, tableStream } from '../read/table-copy.ts';
import { membersOf } from './log-members.ts';
import { openSnapshot } from './join-log.ts';
import { identityOf } from './log-identity.ts';
import { findSlot, isUsable, slotName } from './replication-slots.ts';
import { assertLogical } from './table-shape.ts';
import { truncated } from '../../contract/cells.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

/** Whether the shared slot is there, and none of these streams is still read from a slot of its own. */
export async function canCopy(ctx: Context, { reader_id, streams }: ReplicationRequest): Promise<boolean> {
  const name = slotName(reader_id);
  if (streams.some(({ state }) => identityOf(state)?.slot !== name)) return false;
  return isUsable(await withSession(ctx, { phase: 'run' }, (session) => findSlot(session, name)));
}

/** The session that holds the snapshot stays idle in its transaction; each table is read by one that joins it. */
export async function copyTables(ctx: Context, request: ReplicationRequest): Promise<TableCopies> {
  const name = slotName(request.reader_id);
  const keeper = await PgSession.open(ctx, { phase: 'run' });
  try {
    await assertLogical(keeper);
    const members = await membersOf(keeper, request);
    const { start, source } = await openSnapshot(ctx, { session: keeper, name, joining: members, tables: members });
    const snapshot = await exportSnapshot(keeper);
    const join =
      (stream: number): Join =>
      (session) =>
        beginAt(session, request.streams[stream]!, snapshot);
    return {
      read: (stream) => readJoined(ctx, request.streams[stream]!, join(stream)),
      byteFormats: (stream) => tableFormats(request.streams[stream]!),
      copy: (stream, format) => tableStream(ctx, request.streams[stream]!, { format, join: join(stream) }),
      state: (stream) => ({ cursor: start, source: source(members[stream]!) }),
      close: () => keeper.close(),
    };
  } catch (error) {
    await keeper.close();
    throw error instanceof StreamsFailed ? error : keeper.translate(error);
  }
}

/** A large table over several connections. */
async function* readJoined(ctx: Context, request: ReadRequest, join: Join) {
  yield truncated(request.columns.length);
  yield* tableBatches(ctx, request, join);
}
