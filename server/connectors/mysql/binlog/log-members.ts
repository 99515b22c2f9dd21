import type { ReadRequest, ReplicationRequest, StreamState } from '../../contract/connector.ts';
import { CannotContinueError, ConfigurationError } from '../../contract/errors.ts';
import { ofStream, StreamsFailed } from '../../contract/replication.ts';
import type { MysqlSession } from '../connection/session.ts';
import { contains, parsePosition, type Position, positionText } from './gtid.ts';
import { currentPosition, type LogFile, oldestPosition, purgedError } from './log-server.ts';
import { RESET_HINT } from './reset-hint.ts';
import { assertFollowable, type TableShape } from './table-shape.ts';

/** A stream of a read. */
export interface Member {
  /** Its index in the request. */
  at: number;
  request: ReadRequest;
  /** The table at the start of the read. */
  shape: TableShape;
  /** Up to where the stream has been read; null: its table has not been read. */
  position: Position | null;
}

export type Placed = Member & { position: Position };
export const isPlaced = (member: Member): member is Placed => member.position !== null;
export const stateOf = (position: Position, log: LogFile | null): StreamState => ({
  cursor: positionText(position),
  ...(log && { log }),
});

export const logFileOf = (state: StreamState | null): LogFile | null => (state?.log as LogFile | undefined) ?? null;

/** The streams of the request, each with its table. @throws StreamsFailed */
export async function membersOf(session: MysqlSession, { streams }: ReplicationRequest): Promise<Member[]> {
  const members: Member[] = [];
  for (const [at, request] of streams.entries()) {
    members.push(
      await ofStream(at, async () => {
        const position = statePosition(request.state);
        return { at, request, shape: await assertFollowable(session, request), position };
      }),
    );
  }
  return members;
}

/** @throws ConfigurationError `invalid_cursor` */
export function statePosition(state: StreamState | null): Position | null {
  if (state?.cursor == null) return null;
  const position = parsePosition(state.cursor);
  if (position && position.size > 0) return position;
  throw new CannotContinueError(
    'invalid_cursor',
    `"${state.cursor}" is not a GTID position such as 0-1-100 or 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-100. ${RESET_HINT}`,
  );
}

/**
 * Checks for each stream that the log continues from its state.
 * @returns the end of the log
 * @throws StreamsFailed for those for which it does not
 */
export async function assertContinued(session: MysqlSession, members: readonly Placed[]): Promise<Position> {
  const oldest = await oldestPosition(session);
  const end = await currentPosition(session);
  const failures = new Map<number, unknown>();
  for (const { at, request, position } of members) {
    const problem = problemOf(position, { oldest, end, table: request.stream.name });
    if (problem) failures.set(at, problem);
  }
  if (failures.size > 0) throw new StreamsFailed(failures);
  return end;
}

function problemOf(
  position: Position,
  { oldest, end, table }: { oldest: Position; end: Position; table: string },
): ConfigurationError | null {
  if (!contains(end, position)) {
    return new CannotContinueError(
      'source_went_back',
      `${table} was read up to GTID ${positionText(position)}, and the log of the server ends at ${positionText(end)}: it was set back, or is another one. ${RESET_HINT}`,
    );
  }
  return contains(position, oldest) ? null : purgedError(`GTID ${positionText(position)}`);
}
