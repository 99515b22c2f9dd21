import type { Pgoutput } from 'pg-logical-replication';
import type { ConnectorContext, Following, ReplicatedBatch, StreamState } from '../../contract/connector.ts';
import { ofStream, StreamsFailed } from '../../contract/replication.ts';
import { lsnValue } from '../connection/lsn.ts';
import type { ReplicationStream } from '../connection/replication-stream.ts';
import { PgSession, withSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { ChangeRows } from './change-rows.ts';
import { lagOf } from './lag.ts';
import { fillGaps } from './fill-toast-values.ts';
import { assertContinued, isPlaced, lowestCursor, type Member, type Placed } from './log-members.ts';
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
  openLogSession,
  OVERSIZE,
  startReplication,
} from './read-log.ts';
import { findSlot, freeSlot } from './replication-slots.ts';
import { sameColumns } from './table-shape.ts';

type Context = ConnectorContext<PostgresSourceConfig>;
type Change = Pgoutput.MessageInsert | Pgoutput.MessageUpdate | Pgoutput.MessageDelete;

/** A read that follows gives the states of idle streams this often, so that the slot can move on. */
const IDLE_STATES_MS = 10_000;

/**
 * Reads a log from the lowest state of its streams up to the current end, or follows it. Each stream skips
 * the transactions before its own state. Batches that end with a commit carry the states after it.
 */
export async function* followSharedLog(
  ctx: Context,
  { name, members, follow }: { name: string; members: readonly Member[]; follow?: Following },
): AsyncGenerator<ReplicatedBatch> {
  const placed = members.filter(isPlaced);
  if (placed.length < members.length) throw new Error('a stream without a state cannot follow the log');
  const replication = await openLogSession(ctx);
  try {
    const { target, confirmed, log } = await openSharedLog(ctx, { replication, name, members: placed });
    const from = lowestCursor(placed.map(({ state }) => state))!;
    // The slot stays where it is: streams that are not read now may need what is before `from`.
    const stream = replication.replicate({ ...startReplication(name, from), confirmed });
    yield* follow ? whileFollowed(ctx, stream, { name, log, follow }) : untilTarget(stream, { log, target });
    await stream.end();
  } catch (error) {
    throw error instanceof StreamsFailed ? error : lostError(replication.translate(error), { name });
  } finally {
    await replication.close();
  }
}

/** Checks that the log continues from each state, and marks the source with this read. */
async function openSharedLog(
  ctx: Context,
  { replication, name, members }: { replication: PgSession; name: string; members: readonly Placed[] },
): Promise<{ target: bigint; confirmed: string; log: SharedLog }> {
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
    const log = new SharedLog(ctx, members, await Promise.all(sources));
    await freeSlot(session, name);
    return { target, confirmed: (await findSlot(session, name))?.confirmed ?? '00000000/00000000', log };
  } finally {
    await session.close();
  }
}

async function* untilTarget(
  stream: ReplicationStream<LogMessage>,
  { log, target }: { log: SharedLog; target: bigint },
): AsyncGenerator<ReplicatedBatch> {
  for (;;) {
    const { messages, position } = await stream.next();
    for (const message of messages) {
      const pending = log.read(message);
      if (pending) await pending;
      const done = message.tag === 'commit' && lsnValue(log.position) >= target;
      if (done || log.isFull()) yield log.isOpen ? { parts: await log.take() } : await log.border();
      if (done) return;
    }
    if (log.isOpen || position === null || lsnValue(position) < target) continue;
    log.reach(position);
    yield await log.border();
    return;
  }
}

/** Gives what has arrived at once. */
async function* whileFollowed(
  ctx: Context,
  stream: ReplicationStream<LogMessage>,
  { name, log, follow }: { name: string; log: SharedLog; follow: Following },
): AsyncGenerator<ReplicatedBatch> {
  const lag = new Lag(ctx, name);
  let [given, given_at] = ['', performance.now()];
  for (;;) {
    const lowest = lowestCursor(follow.committed() ?? []);
    if (lowest !== null) stream.confirm(lowest);
    // Inside a transaction its end has to arrive first.
    const { messages, position } = await stream.next(log.isOpen ? undefined : follow.until);
    for (const message of messages) {
      const pending = log.read(message);
      if (pending) await pending;
      if (log.isFull()) yield log.isOpen ? { parts: await log.take() } : await log.border();
    }
    if (log.isOpen) continue;
    if (position !== null) log.reach(position);
    const ends = follow.until.aborted;
    const hasChanges = log.hasChanges;
    const isDue = performance.now() - given_at >= IDLE_STATES_MS && log.position !== given;
    if (hasChanges || isDue || ends) {
      const seconds = hasChanges ? log.ageSeconds : 0;
      yield { ...(await log.border()), lag: { ...lagOf(ctx, lag.bytes), seconds } };
      if (!hasChanges) [given, given_at] = [log.position, performance.now()];
    }
    if (ends) return;
  }
}

/** What the server keeps for a slot, measured from time to time. */
class Lag {
  #bytes = 0;
  #measured = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly ctx: Context,
    private readonly slot: string,
  ) {}

  /** As last measured. */
  get bytes(): number {
    if (performance.now() - this.#measured >= IDLE_STATES_MS) {
      this.#measured = performance.now();
      withSession(this.ctx, { phase: 'run' }, (session) => findSlot(session, this.slot)).then(
        (slot) => (this.#bytes = slot?.lag_bytes ?? 0),
        (error: unknown) => this.ctx.log.warn('the lag of a slot could not be measured', { reason: String(error) }),
      );
    }
    return this.#bytes;
  }
}

/** A stream and the changes that have been read of it. */
interface Follower {
  member: Placed;
  source: LogIdentity;
  rows: ChangeRows;
  /** The transaction that `rows` has begun. */
  begun: Pgoutput.MessageBegin | null;
  from: bigint;
  relation: Pgoutput.MessageRelation | null;
}

/** The changes of all streams of a log since the last batch, by stream. */
class SharedLog {
  /** Inside a transaction. */
  isOpen = false;
  /** Every transaction that was committed before it has been read. */
  position: string;
  #bytes = 0;
  #count = 0;
  #begun: Pgoutput.MessageBegin | null = null;
  #commit = 0n;
  readonly #followers: Follower[];
  readonly #byTable: Map<string, Follower>;
  /** Null: a table that is not read. */
  readonly #byRelation = new Map<Pgoutput.MessageRelation, Follower | null>();

  constructor(
    private readonly ctx: Context,
    members: readonly Placed[],
    sources: readonly LogIdentity[],
  ) {
    this.position = lowestCursor(members.map(({ state }) => state))!;
    this.#followers = members.map((member, at) => ({
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

  /** Changes have been read since the last batch. */
  get hasChanges(): boolean {
    return this.#count > 0;
  }

  /** Of the last transaction. */
  get ageSeconds(): number {
    const committed = Number(this.#begun?.commitTime ?? 0n) / 1000;
    return Math.max(0, (Date.now() - committed) / 1000);
  }

  /** A batch is due: at a border of transactions, or inside one that is large. */
  isFull(): boolean {
    const times = this.isOpen ? OVERSIZE : 1;
    return this.#count >= BATCH_ROWS * times || this.#bytes >= BATCH_BYTES * times;
  }

  /** @returns a promise where a table has to be looked at first */
  read(message: LogMessage): Promise<void> | null {
    this.#bytes += message.bytes;
    switch (message.tag) {
      case 'begin':
        this.isOpen = true;
        this.#begun = message;
        this.#commit = lsnValue(message.commitLsn!);
        return null;
      case 'commit':
        this.isOpen = false;
        this.reach(message.commitEndLsn!);
        return null;
      case 'truncate':
        return this.#truncate(message.relations, message);
      case 'insert':
      case 'update':
      case 'delete':
        return this.#add(message);
      default:
        return null;
    }
  }

  reach(position: string): void {
    if (lsnValue(position) > lsnValue(this.position)) this.position = position;
  }

  /** What was read up to this border of transactions. */
  async border(): Promise<ReplicatedBatch> {
    return { parts: await this.take(), states: this.#states() };
  }

  #add(change: Change): Promise<void> | null {
    const follower = this.#followerOf(change.relation);
    if (!follower) return null;
    if (follower.relation === change.relation) return this.#collect(follower, change);
    return this.#useRelation(follower, change.relation).then(() => void this.#collect(follower, change));
  }

  async #truncate(relations: readonly Pgoutput.MessageRelation[], message: LogMessage): Promise<void> {
    for (const relation of relations) {
      const follower = this.#followerOf(relation);
      if (!follower) continue;
      if (follower.relation !== relation) await this.#useRelation(follower, relation);
      this.#collect(follower, message);
    }
  }

  async take(): Promise<ReplicatedBatch['parts']> {
    const parts: ReplicatedBatch['parts'] = [];
    for (const { member, rows } of this.#followers) {
      if (rows.rows.length === 0) continue;
      await ofStream(member.at, () => fillGaps(this.ctx, member.request, rows.gaps));
      parts.push({ stream: member.at, batch: rows.take() });
    }
    for (const { batch } of parts) batch.bytes = Math.ceil((this.#bytes * batch.rows.length) / this.#count);
    [this.#bytes, this.#count] = [0, 0];
    return parts;
  }

  /** A stream that is ahead of the position stays where it is. */
  #states(): StreamState[] {
    const position = lsnValue(this.position);
    return this.#followers.map(({ member, from, source }) =>
      position > from ? { cursor: this.position, source } : { ...member.state, source },
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
