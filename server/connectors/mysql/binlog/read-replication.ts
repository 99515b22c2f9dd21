import type {
  Batch,
  ConnectorContext,
  Following,
  ReadRequest,
  ReplicatedBatch,
  ReplicationRequest,
} from '../../contract/connector.ts';
import { StreamsFailed } from '../../contract/replication.ts';
import { dueBatch, type FollowedLog, LagMeter, whileFollowed } from '../../kits/log/follow.ts';
import { MysqlSession, withSession } from '../connection/session.ts';
import type { MysqlSourceConfig } from '../connection/settings.ts';
import { Charsets } from './values/charsets.ts';
import { SharedLog } from './shared-log.ts';
import { contains, type Position, positionText } from './gtid.ts';
import { lagOf, measureLag } from './lag.ts';
import { assertLogged, closeLog, lostError, oldestPosition, openLog, type OpenLog } from './log-server.ts';
import { assertContinued, isPlaced, logFileOf, type Member, membersOf, stateOf, statePosition } from './log-members.ts';
import { openSnapshot, wholeTable } from './snapshot.ts';

type Context = ConnectorContext<MysqlSourceConfig>;

/**
 * Reads several tables by change data capture, over one connection to the log. Each stream has a state of its own: `cursor`
 * is the GTID position up to which every transaction has been read. Streams without one are read in full first, all at
 * one position.
 */
export async function* readReplication(ctx: Context, request: ReplicationRequest): AsyncGenerator<ReplicatedBatch> {
  const { members, charsets } = await prepared(ctx, request);
  yield* readTables(ctx, members, request);
  const placed = members.filter(isPlaced);
  const end = await withSession(ctx, { phase: 'run' }, (session) => assertContinued(session, placed));
  const log = new SharedLog(ctx, placed, { charsets, as_lines: request.as_lines });
  const { follow } = request;
  if (!follow && contains(log.position, end)) {
    yield {
      parts: [],
      states: members.map(({ position }, at) => stateOf(position!, logFileOf(request.streams[at]!.state))),
    };
    return;
  }
  const open = await openLog(ctx, log.position);
  try {
    yield* follow ? whileFollowed(followedLog(ctx, open, { log, follow })) : untilEnd(open, { log, end });
  } catch (error) {
    throw error instanceof StreamsFailed ? error : lostError(open.session, error);
  } finally {
    await closeLog(open);
  }
}

/** As `readReplication`, of one table. */
export async function* readChanges(ctx: Context, request: ReadRequest): AsyncGenerator<Batch> {
  try {
    for await (const { parts, states } of readReplication(ctx, { reader_id: request.reader_id!, streams: [request] })) {
      const [state] = states ?? [];
      yield { ...(parts[0]?.batch ?? { rows: [], bytes: 0 }), ...(state && { state }) };
    }
  } catch (error) {
    throw error instanceof StreamsFailed ? [...error.failures.values()][0] : error;
  }
}

/** Whether the log still has everything after the state. */
export async function canResume(ctx: Context, { reader_id, state }: ReadRequest): Promise<boolean> {
  if (reader_id === undefined || state?.cursor == null) return true;
  const position = statePosition(state)!;
  return withSession(ctx, { phase: 'run' }, async (session) => contains(position, await oldestPosition(session)));
}

async function prepared(ctx: Context, request: ReplicationRequest): Promise<{ members: Member[]; charsets: Charsets }> {
  const session = await MysqlSession.open(ctx, { phase: 'run' });
  try {
    await assertLogged(session, ctx.config.database);
    const members = await membersOf(session, request);
    // Before tables are read in full.
    await assertContinued(session, members.filter(isPlaced));
    return { members, charsets: await Charsets.load(session) };
  } catch (error) {
    throw error instanceof StreamsFailed ? error : session.translate(error);
  } finally {
    await session.close();
  }
}

/** Reads the tables of streams without a state, from one snapshot. */
async function* readTables(
  ctx: Context,
  members: Member[],
  request: ReplicationRequest,
): AsyncGenerator<ReplicatedBatch> {
  const tables = members.filter((member) => !isPlaced(member));
  if (tables.length === 0) return;
  const session = await MysqlSession.open(ctx, { phase: 'run' });
  try {
    const { position, file } = await openSnapshot(ctx, session, tables);
    for (const { at, request: one } of tables) {
      try {
        for await (const batch of wholeTable(ctx, session, one)) yield { parts: [{ stream: at, batch }] };
      } catch (error) {
        throw new StreamsFailed(new Map([[at, session.translate(error)]]));
      }
    }
    for (const member of tables) member.position = position;
    const states = members.map((member) =>
      tables.includes(member) ? stateOf(position, file) : request.streams[member.at]!.state,
    );
    yield { parts: [], states, complete: true };
  } catch (error) {
    throw error instanceof StreamsFailed ? error : session.translate(error);
  } finally {
    await session.close();
  }
}

/** Up to the end that the log had when the read began. */
async function* untilEnd(
  { stream, decoder }: OpenLog,
  { log, end }: { log: SharedLog; end: Position },
): AsyncGenerator<ReplicatedBatch> {
  for (;;) {
    for (const raw of await stream.next()) {
      const event = decoder.decode(raw);
      const pending = log.read(event, raw);
      if (pending) await pending;
      const isDone = !log.isOpen && contains(log.position, end);
      if (isDone || log.isFull()) yield await dueBatch(log);
      if (isDone) return;
    }
  }
}

function followedLog(
  ctx: Context,
  { stream, decoder }: OpenLog,
  { log, follow }: { log: SharedLog; follow: Following },
): FollowedLog<Buffer> {
  const meter = new LagMeter((error) =>
    ctx.log.warn('the lag of a log could not be measured', { reason: String(error) }),
  );
  return {
    log,
    follow,
    next: (until) => stream.next(until),
    read: (raw) => log.read(decoder.decode(raw), raw),
    position: () => positionText(log.position),
    lag: ({ states }) =>
      lagOf(
        ctx,
        meter.bytes(async () => (await measureLag(ctx, [states![0]!])).bytes),
      ),
  };
}
