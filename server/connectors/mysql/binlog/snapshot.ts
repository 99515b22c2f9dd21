import type { Batch, Cell, ConnectorContext, ReadRequest } from '../../contract/connector.ts';
import { TRUNCATE } from '../../contract/changes.ts';
import { ConfigurationError, ConnectorError, RetryableError } from '../../contract/errors.ts';
import { ofStream } from '../../contract/replication.ts';
import { fromClause } from '../../kits/sql/request.ts';
import type { MysqlSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';
import { literal, mysqlNames } from '../connection/sql.ts';
import { batches, fullRest, keepsZeroDates } from '../read/read-rows.ts';
import { beginSnapshot } from '../read/shared-snapshot.ts';
import { selection } from '../read/select.ts';
import { standStill } from '../read/stand-still.ts';
import type { Position } from './gtid.ts';
import { currentFile, currentPosition, type LogFile, positionOf } from './log-server.ts';
import type { Member } from './log-members.ts';
import { assertUnchanged } from './table-shape.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

/** What a snapshot contains: every transaction up to here, and none after. */
export interface SnapshotPosition {
  position: Position;
  file: LogFile;
}

/** Begins a transaction that sees all tables at one position of the log. The tables keep their columns until its end. */
export async function openSnapshot(
  ctx: Context,
  session: MysqlSession,
  members: readonly Member[],
): Promise<SnapshotPosition> {
  // What is prepared is in the log already, and not in the snapshot.
  await assertNothingPrepared(session);
  const found = await (session.version.flavor === 'MySQL'
    ? lockedPosition(ctx, session, members)
    : ownPosition(session));
  for (const { at, request, shape } of members) {
    await ofStream(at, async () => {
      await session.query(`select 1 from ${fromClause(mysqlNames, request)} limit 0`);
      await assertUnchanged(session, request, shape);
    });
  }
  await assertNothingPrepared(session);
  return found;
}

/** MySQL does not know the position of a snapshot: for a moment no commit changes the tables. */
async function lockedPosition(
  ctx: Context,
  session: MysqlSession,
  members: readonly Member[],
): Promise<SnapshotPosition> {
  const names = members.map(({ request }) => request.stream.name);
  const found: SnapshotPosition[] = [];
  await standStill(ctx, names, async () => {
    await beginSnapshot(session);
    found.push({ position: await currentPosition(session), file: await currentFile(session) });
  });
  return found[0]!;
}

/** MariaDB knows the position of a snapshot without a lock. */
async function ownPosition(session: MysqlSession): Promise<SnapshotPosition> {
  await beginSnapshot(session);
  const { rows } = await session.query(
    "show status where variable_name in ('binlog_snapshot_file', 'binlog_snapshot_position')",
  );
  const values = new Map(rows.map(([name, value]) => [name!.toLowerCase(), value ?? '']));
  const file = {
    name: values.get('binlog_snapshot_file') ?? '',
    position: Number(values.get('binlog_snapshot_position')),
  };
  if (!file.name)
    throw new ConfigurationError('binlog_disabled', 'The server writes no binary log. Start it with log_bin');
  const gtid = await session.query(`select binlog_gtid_pos(${literal(file.name)}, ${file.position})`, { slow: true });
  return { position: positionOf(gtid.rows[0]?.[0] ?? ''), file };
}

async function assertNothingPrepared(session: MysqlSession): Promise<void> {
  // There the lock waits for them, and the list needs a privilege of its own (XA_RECOVER_ADMIN).
  if (session.version.flavor === 'MySQL') return;
  const { rows } = await session.query('xa recover').catch((error: unknown) => {
    if (error instanceof ConnectorError && error.code === 'permission_denied') return { rows: [] };
    throw error;
  });
  if (rows.length === 0) return;
  throw new RetryableError(
    'waiting_for_transactions',
    `${rows.length} XA transactions are prepared. Tables are read once they are committed or rolled back (XA RECOVER)`,
  );
}

/** Rows of earlier reads that are not in the snapshot were deleted, so the destination starts empty. */
export async function* wholeTable(ctx: Context, session: MysqlSession, request: ReadRequest): AsyncGenerator<Batch> {
  yield { rows: [request.columns.map((): Cell => null)], changes: [TRUNCATE], bytes: 0 };
  const keep = keepsZeroDates(ctx);
  yield* batches(ctx, { session, selected: selection(request.columns, keep), rest: fullRest(request, keep) });
}
