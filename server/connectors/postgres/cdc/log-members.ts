import type { ReadRequest, ReplicationRequest, StreamState } from '../../contract/connector.ts';
import { CannotContinueError, ConnectorError } from '../../contract/errors.ts';
import { ofStream, StreamsFailed } from '../../contract/replication.ts';
import { isLsn, lsnValue } from '../connection/lsn.ts';
import type { PgSession } from '../connection/session.ts';
import {
  assertSameHistory,
  assertSamePublication,
  identityOf,
  type LogIdentity,
  publicationOf,
  type PublicationRows,
} from './log-identity.ts';
import { assertLogAvailable } from './read-log.ts';
import { findSlot, type Slot, slotName } from './replication-slots.ts';
import { assertFollowable, RESET_CURSOR_HINT, type TableShape } from './table-shape.ts';

/** A stream that is read from a log with others. */
export interface Member {
  /** Its index in the request. */
  at: number;
  request: ReadRequest;
  /** The table at the start of the read. */
  shape: TableShape;
  known: LogIdentity | null;
  /**
   * Where its changes are. `table`: nowhere yet, it is read in full. `own_slot`: in a slot that it has alone, from the
   * time before streams shared one. `log`: in the shared slot.
   */
  place: 'table' | 'own_slot' | 'log';
  /** Up to where the stream has been read; null: its table has not been read. */
  state: StreamState | null;
}

export type Placed = Member & { state: StreamState & { cursor: string } };
export const isPlaced = (member: Member): member is Placed => member.state?.cursor != null;

/** The streams of the request, each with its table and its place. @throws StreamsFailed */
export async function membersOf(session: PgSession, { streams, reader_id }: ReplicationRequest): Promise<Member[]> {
  const shared = slotName(reader_id);
  const members: Member[] = [];
  for (const [at, request] of streams.entries()) {
    members.push(await ofStream(at, () => memberOf(session, { at, request, shared })));
  }
  return members;
}

async function memberOf(
  session: PgSession,
  { at, request, shared }: Pick<Member, 'at' | 'request'> & { shared: string },
): Promise<Member> {
  const shape = await assertFollowable(session, request);
  const cursor = request.state?.cursor ?? null;
  if (cursor !== null && !isLsn(cursor)) {
    throw new CannotContinueError(
      'invalid_cursor',
      `"${cursor}" is not an LSN such as 00000000/0195F1A8. ${RESET_CURSOR_HINT}`,
    );
  }
  const known = cursor === null ? null : identityOf(request.state);
  const hasOwn = cursor !== null && known?.slot !== shared && (await findSlot(session, slotName(request.reader_id!)));
  const place = cursor === null ? 'table' : hasOwn ? 'own_slot' : 'log';
  return { at, request, shape, known, place, state: cursor === null ? null : request.state };
}

/**
 * Checks for each stream that the shared log continues from its state.
 * @returns the slot of the log
 * @throws StreamsFailed for those for which it does not
 */
export async function assertContinued(
  session: PgSession,
  replication: PgSession,
  { members, publication }: { members: readonly Member[]; publication: PublicationRows },
): Promise<Slot | null> {
  const slot = await findSlot(session, publication.name);
  const failures = new Map<number, unknown>();
  for (const member of members.filter(isPlaced)) {
    if (member.place !== 'log') continue;
    try {
      await assertContinuedBy(replication, { member, slot, publication });
    } catch (error) {
      if (!(error instanceof ConnectorError) || error.retryable) throw error;
      failures.set(member.at, error);
    }
  }
  if (failures.size > 0) throw new StreamsFailed(failures);
  return slot;
}

async function assertContinuedBy(
  replication: PgSession,
  { member, slot, publication }: { member: Placed; slot: Slot | null; publication: PublicationRows },
): Promise<void> {
  const { request, known, state } = member;
  const about = { known, name: publication.name, from: state.cursor, table: request.stream.name };
  await assertSameHistory(replication, about);
  assertLogAvailable({ slot, name: publication.name, from: state.cursor });
  assertSamePublication(publicationOf(publication, request), about);
}

/** The lowest position of these states. */
export function lowestCursor(states: readonly StreamState[]): string | null {
  const cursors = states.flatMap(({ cursor }) => (cursor !== null && isLsn(cursor) ? [cursor] : []));
  return cursors.reduce<string | null>(
    (lowest, cursor) => (lowest === null || lsnValue(cursor) < lsnValue(lowest) ? cursor : lowest),
    null,
  );
}
