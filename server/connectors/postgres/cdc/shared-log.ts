import type {
  ConnectorContext,
  Following,
  ReplicatedBatch,
  ReplicationRequest,
  StreamState,
} from '../../contract/connector.ts';
import { ofStream, StreamsFailed } from '../../contract/replication.ts';
import {
  BATCH_BYTES,
  BATCH_ROWS,
  type ChangeLog,
  dueBatch,
  type FollowedLog,
  LagMeter,
  OVERSIZE,
  whileFollowed,
} from '../../kits/log/follow.ts';
import { compactLsn, type Lsn, lsnText, lsnValue } from '../connection/lsn.ts';
import { PgSession, withSession } from '../connection/session.ts';
import type { PostgresSourceConfig } from '../connection/settings.ts';
import { LineCollector } from './change-lines.ts';
import { ChangeRows } from './change-rows.ts';
import { lagOf } from './lag.ts';
import { fillGaps } from './fill-toast-values.ts';
import {
  type Begin,
  type LogEvent,
  type LoggedChange,
  type LoggedRelation,
  type LogMessage,
  PgoutputDecoder,
} from './pgoutput.ts';
import { assertContinued, isPlaced, lowestCursor, type Member, type Placed } from './log-members.ts';
import {
  assertSamePublication,
  type LogIdentity,
  markOf,
  markStatement,
  publicationOf,
  type PublicationRows,
  publicationRows,
  publishedAs,
  serverPosition,
} from './log-identity.ts';
import { assertUnchanged, collect, endOfLog, lostError, openLogSession } from './read-log.ts';
import { isMark, sendsMessages } from './marks.ts';
import { findSlot, freeSlot } from './replication-slots.ts';
import { SlotReader } from './slot-reader.ts';
import { changedDuringRead, sameColumns } from './table-shape.ts';

type Context = ConnectorContext<PostgresSourceConfig>;

/**
 * Reads a log from the lowest state of its streams up to the current end, or follows it. Each stream skips
 * the transactions before its own state. Batches that end with a commit carry the states after it.
 */
export async function* followSharedLog(
  ctx: Context,
  {
    name,
    members,
    follow,
    committed,
    as_lines,
  }: { name: string; members: readonly Member[] } & Pick<ReplicationRequest, 'follow' | 'committed' | 'as_lines'>,
): AsyncGenerator<ReplicatedBatch> {
  const placed = members.filter(isPlaced);
  if (placed.length < members.length) throw new Error('a stream without a state cannot follow the log');
  const replication = await openLogSession(ctx);
  let reader: SlotReader | null = null;
  try {
    const opened = await openSharedLog(ctx, { replication, name, members: placed, as_lines });
    const { target, confirmed, log, messages } = opened;
    const slot = {
      name,
      from: lsnValue(confirmed),
      target,
      committed: () => lowestCursor(committed?.() ?? []),
      follows: follow ? { messages } : null,
    };
    const from = lowestCursor(placed.map(({ state }) => state))!;
    reader = await SlotReader.open(ctx, replication, { slot, from });
    yield* follow
      ? whileFollowed(followedLog(ctx, reader, { name, log, follow }))
      : untilTarget(reader.next, { log, target: compactLsn(target) });
    await reader.end();
  } catch (error) {
    throw error instanceof StreamsFailed ? error : lostError((reader ?? replication).translate(error), { name });
  } finally {
    await (reader ?? replication).close();
  }
}

/** Checks that the log continues from each state, and marks the source with this read. */
async function openSharedLog(
  ctx: Context,
  {
    replication,
    name,
    members,
    as_lines,
  }: { replication: PgSession; name: string; members: readonly Placed[]; as_lines?: ReadonlySet<number> },
): Promise<{ target: bigint; confirmed: string; log: SharedLog; messages: boolean }> {
  const session = await PgSession.open(ctx, { phase: 'run' });
  try {
    const before = await publicationRows(session, name);
    const slot = await assertContinued(session, replication, { members, publication: before });
    const marks = members.map(({ known }) => known?.mark ?? 0);
    const mark = Math.max(markOf(before), ...marks) + 1;
    const target = await endOfLog(session, { name, slot, mark: markStatement(name, mark) });
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
    const log = new SharedLog(ctx, members, { sources: await Promise.all(sources), as_lines });
    await freeSlot(session, name);
    // Again: a reader that has ended may have confirmed more until then.
    const confirmed = (await findSlot(session, name))?.confirmed ?? '00000000/00000000';
    return { target, confirmed, log, messages: await sendsMessages(session) };
  } finally {
    await session.close();
  }
}

async function* untilTarget(
  next: SlotReader['next'],
  { log, target }: { log: SharedLog; target: Lsn },
): AsyncGenerator<ReplicatedBatch> {
  for (;;) {
    const { messages, position } = await next();
    for (const message of messages) {
      const pending = log.read(message);
      if (pending) await pending;
      const done = message.tag === 'commit' && log.reached >= target;
      if (done || log.isFull()) yield await dueBatch(log);
      if (done) return;
    }
    if (log.isOpen || position === null || lsnValue(position) < target) continue;
    log.reach(compactLsn(lsnValue(position)));
    yield await log.border();
    return;
  }
}

function followedLog(
  ctx: Context,
  reader: SlotReader,
  { name, log, follow }: { name: string; log: SharedLog; follow: Following },
): FollowedLog<LogMessage> {
  const meter = new LagMeter((error) =>
    ctx.log.warn('the lag of a slot could not be measured', { reason: String(error) }),
  );
  let altered: StreamsFailed | null = null;
  const look = () =>
    withSession(ctx, { phase: 'run' }, async (session) => {
      altered = log.alteredIn(await publicationRows(session, name));
      return (await findSlot(session, name))?.lag_bytes ?? 0;
    });
  let reached: string | null = null;
  return {
    log,
    follow,
    async next(until) {
      if (altered) throw altered;
      const { messages, position } = await reader.next(until);
      reached = position;
      return messages;
    },
    read: (message) => log.read(message),
    isBehind: () => reader.isBehind,
    position() {
      if (reached !== null) log.reach(compactLsn(lsnValue(reached)));
      return log.position;
    },
    lag: () => lagOf(ctx, meter.bytes(look)),
  };
}

/** A stream and the changes that have been read of it. */
interface Follower {
  member: Placed;
  source: LogIdentity;
  /** What comes before `rows`; null: all of it is there. */
  lines: LineCollector | null;
  rows: ChangeRows;
  /** Since the last batch there was a change that is not a line. Those after it must not come before it. */
  byRows: boolean;
  /** The transaction that `rows` has begun. */
  begun: Begin | null;
  from: Lsn;
  relation: LoggedRelation | null;
}

/** The changes of all streams of a log since the last batch, by stream. */
class SharedLog implements ChangeLog {
  /** Inside a transaction. */
  isOpen = false;
  /** Every transaction that was committed before it has been read. */
  reached: Lsn;
  #isAwaited = false;
  #bytes = 0;
  #count = 0;
  #begun: Begin | null = null;
  #commit: Lsn = 0;
  readonly #decoder = new PgoutputDecoder();
  readonly #followers: Follower[];
  readonly #byTable: Map<number, Follower>;
  /** Null: a table that is not read. */
  readonly #byRelation = new Map<LoggedRelation, Follower | null>();

  constructor(
    private readonly ctx: Context,
    members: readonly Placed[],
    { sources, as_lines }: { sources: readonly LogIdentity[]; as_lines?: ReadonlySet<number> },
  ) {
    this.reached = compactLsn(lsnValue(lowestCursor(members.map(({ state }) => state))!));
    this.#followers = members.map((member, at) => ({
      member,
      source: sources[at]!,
      rows: new ChangeRows(member.request),
      lines: as_lines?.has(member.at) ? new LineCollector(member.request) : null,
      byRows: false,
      begun: null,
      from: compactLsn(lsnValue(member.state.cursor)),
      relation: null,
    }));
    this.#byTable = new Map(this.#followers.map((one) => [one.member.shape.oid, one]));
  }

  get position(): string {
    return lsnText(this.reached);
  }

  /**
   * The streams that are no longer published as they were: the log does not tell of a table that was renamed, dropped or
   * taken out of its publication. Opened again, they get the reason.
   */
  alteredIn(found: PublicationRows): StreamsFailed | null {
    const altered = this.#followers.filter(
      ({ member: { request }, source }) => publishedAs(found, request) !== source.publication,
    );
    const failures = altered.map(
      ({ member: { at, request } }) => [at, changedDuringRead(request.stream.name)] as const,
    );
    return failures.length > 0 ? new StreamsFailed(new Map(failures)) : null;
  }

  get hasChanges(): boolean {
    return this.#count > 0;
  }

  get ageSeconds(): number {
    const committed = (this.#begun?.commitTime ?? 0) / 1000;
    return Math.max(0, (Date.now() - committed) / 1000);
  }

  takeAwaited(): boolean {
    const isAwaited = this.#isAwaited;
    this.#isAwaited = false;
    return isAwaited;
  }

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
        this.#commit = message.commitLsn;
        return null;
      case 'commit':
        this.isOpen = false;
        this.reach(message.endLsn);
        return null;
      case 'message':
        this.#isAwaited ||= isMark(message);
        return null;
      case 'truncate':
        return this.#truncate(message.relations, message);
      case 'logged':
        return this.#add(message);
      default:
        return null;
    }
  }

  reach(position: Lsn): void {
    if (position > this.reached) this.reached = position;
  }

  async border(): Promise<ReplicatedBatch> {
    return { parts: await this.take(), states: this.#states() };
  }

  #add(change: LoggedChange): Promise<void> | null {
    const follower = this.#followerOf(change.relation);
    if (!follower) return null;
    if (follower.relation === change.relation) return this.#keep(follower, change);
    return this.#useRelation(follower, change.relation).then(() => void this.#keep(follower, change));
  }

  #keep(follower: Follower, change: LoggedChange): null {
    if (follower.byRows || !follower.lines?.add(change, this.#begun!))
      return this.#collect(follower, this.#decoder.changeOf(change));
    this.#count += 1;
    return null;
  }

  async #truncate(relations: readonly LoggedRelation[], message: LogEvent): Promise<void> {
    for (const relation of relations) {
      const follower = this.#followerOf(relation);
      if (!follower) continue;
      if (follower.relation !== relation) await this.#useRelation(follower, relation);
      this.#collect(follower, message);
    }
  }

  async take(): Promise<ReplicatedBatch['parts']> {
    const parts: ReplicatedBatch['parts'] = [];
    for (const follower of this.#followers) {
      const { member, rows } = follower;
      follower.byRows = false;
      const lines = follower.lines?.take();
      if (lines) parts.push({ stream: member.at, batch: { rows: [], bytes: 0, lines } });
      if (rows.rows.length === 0) continue;
      await ofStream(member.at, () => fillGaps(this.ctx, member.request, rows.gaps));
      parts.push({ stream: member.at, batch: rows.take() });
    }
    for (const { batch } of parts) {
      batch.bytes = Math.ceil((this.#bytes * (batch.lines?.rows ?? batch.rows.length)) / this.#count);
    }
    [this.#bytes, this.#count] = [0, 0];
    return parts;
  }

  /** A stream that is ahead of the position stays where it is. */
  #states(): StreamState[] {
    const cursor = this.position;
    return this.#followers.map(({ member, from, source }) =>
      this.reached > from ? { cursor, source } : { ...member.state, source },
    );
  }

  /** Null: the table is not read, or the stream has read this transaction before. */
  #followerOf(relation: LoggedRelation): Follower | null {
    let follower = this.#byRelation.get(relation);
    if (follower === undefined) {
      follower = this.#byTable.get(relation.oid) ?? null;
      this.#byRelation.set(relation, follower);
    }
    return follower && this.#commit >= follower.from ? follower : null;
  }

  #collect(follower: Follower, message: LogEvent): null {
    follower.byRows = true;
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
  async #useRelation(follower: Follower, relation: LoggedRelation): Promise<void> {
    const { member } = follower;
    const { schema, name } = relation;
    const known = { ...member.shape, schema: member.request.stream.namespace, name: member.request.stream.name };
    const differs = (one: Pick<typeof known, 'schema' | 'name' | 'columns'>) =>
      one.schema !== schema || one.name !== name || !sameColumns(relation.columns, one.columns);
    const isChanged = differs(follower.relation ?? known);
    follower.relation = relation;
    if (isChanged && differs(known)) await ofStream(member.at, () => assertUnchanged(this.ctx, member));
    follower.rows.useRelation(relation);
    follower.lines?.useRelation(relation);
  }
}

const failureOf = ({ member }: Follower, error: unknown) => new StreamsFailed(new Map([[member.at, error]]));
