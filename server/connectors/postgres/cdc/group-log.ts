import type { Pgoutput } from 'pg-logical-replication';
import type { ConnectorContext, ReplicatedBatch, StreamState } from '../../contract/connector.ts';
import { ofStream, StreamsFailed } from '../../contract/replication.ts';
import { lsnValue } from '../connection/lsn.ts';
import type { ReplicationStream } from '../connection/replication-stream.ts';
import { PgSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { ChangeRows } from './change-rows.ts';
import { fillGaps } from './fill-toast-values.ts';
import { assertContinued, isPlaced, lowestCursor, type Member } from './group-members.ts';
import {
  assertSamePublication,
  type LogIdentity,
  markOf,
  markStatement,
  publicationOf,
  publicationRows,
  serverPosition,
} from './log-identity.ts';
import {
  assertUnchanged,
  BATCH_BYTES,
  BATCH_ROWS,
  collect,
  endOfLog,
  type LogMessage,
  lostError,
  openReplication,
  OVERSIZE,
  startReplication,
} from './read-log.ts';
import { findSlot, freeSlot } from './replication-slots.ts';
import { sameColumns } from './table-shape.ts';

type Context = ConnectorContext<PostgresSourceConfig>;
type Change = Pgoutput.MessageInsert | Pgoutput.MessageUpdate | Pgoutput.MessageDelete;

/**
 * Reads the log of a group from the lowest state of its streams up to the current end. Each stream skips the
 * transactions before its own state. Batches that end with a commit carry the states after it.
 */
export async function* followGroup(
  ctx: Context,
  { name, members }: { name: string; members: readonly Member[] },
): AsyncGenerator<ReplicatedBatch> {
  const replication = await openReplication(ctx);
  try {
    const { target, confirmed, log } = await openGroupLog(ctx, { replication, name, members });
    const from = lowestCursor(members.flatMap(({ state }) => state ?? []))!;
    // The slot stays where it is: streams that are not read now may need what is before `from`.
    const stream = replication.replicate({ ...startReplication(name, from), confirmed });
    yield* untilTarget(stream, { log, target });
    await stream.end();
  } catch (error) {
    throw error instanceof StreamsFailed ? error : lostError(replication.translate(error), { name });
  } finally {
    await replication.close();
  }
}

/** Checks that the log continues from each state, and marks the source with this read. */
async function openGroupLog(
  ctx: Context,
  { replication, name, members }: { replication: PgSession; name: string; members: readonly Member[] },
): Promise<{ target: bigint; confirmed: string; log: GroupLog }> {
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    const before = await publicationRows(session, name);
    await assertContinued(session, replication, { members, publication: before });
    const marks = members.map(({ known }) => known?.mark ?? 0);
    const mark = Math.max(markOf(before), ...marks) + 1;
    const target = await endOfLog(session, markStatement(name, mark));
    // Again, since the log up to its end was decoded by the publication of that time.
    const now = await publicationRows(session, name);
    const { system_identifier, timeline } = await serverPosition(replication);
    const sources = members.map(({ at, request }) =>
      ofStream(at, async (): Promise<LogIdentity> => {
        const { rows } = publicationOf(now, request);
        const source = { system_identifier, timeline, publication: rows, mark, slot: name };
        const known = { ...source, publication: publicationOf(before, request).rows };
        assertSamePublication({ rows, mark }, { known, name, from: '', table: request.stream.name });
        return source;
      }),
    );
    const log = new GroupLog(ctx, members, await Promise.all(sources));
    await freeSlot(session, name);
    return { target, confirmed: (await findSlot(session, name))?.confirmed ?? '00000000/00000000', log };
  } finally {
    await session.close();
  }
}

async function* untilTarget(
  stream: ReplicationStream<LogMessage>,
  { log, target }: { log: GroupLog; target: bigint },
): AsyncGenerator<ReplicatedBatch> {
  let open = false;
  for (;;) {
    const { messages, position } = await stream.next();
    for (const message of messages) {
      log.bytes += message.bytes;
      if (message.tag === 'begin') {
        open = true;
        log.begin(message);
      } else if (message.tag === 'commit') {
        open = false;
        const cursor = message.commitEndLsn!;
        const done = lsnValue(cursor) >= target;
        if (done || log.isFull(1)) yield { parts: await log.take(), states: log.statesAt(cursor) };
        if (done) return;
      } else if (log.isFull(OVERSIZE)) yield { parts: await log.take() };
      if (message.tag === 'truncate') {
        for (const relation of message.relations) await log.truncate(relation, message);
      } else if (message.tag === 'insert' || message.tag === 'update' || message.tag === 'delete') {
        const pending = log.add(message);
        if (pending) await pending;
      }
    }
    if (open || position === null || lsnValue(position) < target) continue;
    yield { parts: await log.take(), states: log.statesAt(position) };
    return;
  }
}

/** A stream and the changes that have been read of it. */
interface Follower {
  member: Member;
  source: LogIdentity;
  rows: ChangeRows;
  /** The transaction that `rows` has begun. */
  begun: Pgoutput.MessageBegin | null;
  from: bigint;
  relation: Pgoutput.MessageRelation | null;
}

/** The changes of a group since the last batch, by stream. */
class GroupLog {
  bytes = 0;
  #count = 0;
  #begun: Pgoutput.MessageBegin | null = null;
  #commit = 0n;
  readonly #followers: Follower[];
  readonly #byTable: Map<string, Follower>;
  /** Null: a table that is not read. */
  readonly #byRelation = new Map<Pgoutput.MessageRelation, Follower | null>();

  constructor(
    private readonly ctx: Context,
    members: readonly Member[],
    sources: readonly LogIdentity[],
  ) {
    this.#followers = members.filter(isPlaced).map((member, at) => ({
      member,
      source: sources[at]!,
      rows: new ChangeRows(member.request),
      begun: null,
      from: lsnValue(member.state.cursor),
      relation: null,
    }));
    const named = this.#followers.map((one) => [tableKey(one.member.request.stream), one] as const);
    this.#byTable = new Map(named);
  }

  isFull(times: number): boolean {
    return this.#count >= BATCH_ROWS * times || this.bytes >= BATCH_BYTES * times;
  }

  begin(message: Pgoutput.MessageBegin): void {
    this.#begun = message;
    this.#commit = lsnValue(message.commitLsn!);
  }

  /** @returns a promise where the table has to be looked at first */
  add(change: Change): Promise<void> | null {
    const follower = this.#followerOf(change.relation);
    if (!follower) return null;
    if (follower.relation === change.relation) return this.#collect(follower, change);
    return this.#useRelation(follower, change.relation).then(() => void this.#collect(follower, change));
  }

  async truncate(relation: Pgoutput.MessageRelation, message: LogMessage): Promise<void> {
    const follower = this.#followerOf(relation);
    if (!follower) return;
    if (follower.relation !== relation) await this.#useRelation(follower, relation);
    this.#collect(follower, message);
  }

  async take(): Promise<ReplicatedBatch['parts']> {
    const parts: ReplicatedBatch['parts'] = [];
    for (const { member, rows } of this.#followers) {
      if (rows.rows.length === 0) continue;
      await ofStream(member.at, () => fillGaps(this.ctx, member.request, rows.gaps));
      parts.push({ stream: member.at, batch: rows.take() });
    }
    for (const { batch } of parts) batch.bytes = Math.ceil((this.bytes * batch.rows.length) / this.#count);
    [this.bytes, this.#count] = [0, 0];
    return parts;
  }

  /** A stream that is ahead of the position stays where it is. */
  statesAt(cursor: string): StreamState[] {
    const position = lsnValue(cursor);
    return this.#followers.map(({ member, from, source }) =>
      position > from ? { cursor, source } : { ...member.state!, source },
    );
  }

  /** Null: the table is not read, or the stream has read this transaction before. */
  #followerOf(relation: Pgoutput.MessageRelation): Follower | null {
    let follower = this.#byRelation.get(relation);
    if (follower === undefined) {
      follower = this.#byTable.get(tableKey({ namespace: relation.schema, name: relation.name })) ?? null;
      this.#byRelation.set(relation, follower);
    }
    return follower && this.#commit >= follower.from ? follower : null;
  }

  #collect(follower: Follower, message: LogMessage | Change): null {
    if (follower.begun !== this.#begun) {
      follower.begun = this.#begun;
      follower.rows.begin(this.#begun!);
    }
    const before = follower.rows.rows.length;
    try {
      collect(follower.rows, message);
    } catch (error) {
      throw failureOf(follower, error);
    }
    this.#count += follower.rows.rows.length - before;
    return null;
  }

  /** The server repeats an unchanged relation whenever it reloads the table's definition. */
  async #useRelation(follower: Follower, relation: Pgoutput.MessageRelation): Promise<void> {
    const { member } = follower;
    const known = member.shape.columns;
    const isChanged = !sameColumns(relation.columns, follower.relation?.columns ?? known);
    follower.relation = relation;
    if (isChanged && !sameColumns(relation.columns, known)) {
      await ofStream(member.at, () => assertUnchanged(this.ctx, member));
    }
    follower.rows.useRelation(relation);
  }
}

const tableKey = ({ namespace, name }: { namespace: string | null; name: string }) => JSON.stringify([namespace, name]);

const failureOf = ({ member }: Follower, error: unknown) => new StreamsFailed(new Map([[member.at, error]]));
