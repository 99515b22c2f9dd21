import { fromSource, onSide } from '../../connector-runtime/side-error.ts';
import type {
  ReplicatedBatch,
  ReplicationRequest,
  ReplicationWriter,
  StreamState,
  WriteCounts,
} from '../../connectors/contract/connector.ts';
import { type Attempt, WorkerStopping } from '../attempt.ts';
import { recordLoaded } from '../column-history.ts';
import { openSides, recordCommitted } from '../move-stream.ts';
import { CheckpointPace } from '../pace/checkpoint-pace.ts';
import { recordFreshness } from '../../runs/log/freshness.ts';
import { noteCommit, noteLogRead } from '../transfer-notes.ts';
import { withAttempts } from './attempts-failed.ts';
import { confirmLog, noteLag, registerConsumers, statesOfOthers } from './cdc-consumers.ts';
import { type Gathered, gather } from './gather.ts';
import { countRows, lost, type Member, membersOf, type OpenSides, prepareAll } from './members.ts';
import { CommitRecords } from './record-commits.ts';
import type { RunningCopies } from './running-copies.ts';
import type { SharedAttempts } from './shared-attempts.ts';

/**
 * Read between two commits, at most, but for larger transactions: a commit merges while the log is read on, so the two
 * servers work at the same time, which fewer and larger ones would not let them do. More tables make a commit cost more.
 */
const commitBytes = (tables: number) => 1024 * 1024 * (1 + tables / 16);

/**
 * What is committed, or brought into place, as soon as nothing else has arrived: the destination would be idle until
 * the source has sent enough for the next commit.
 */
const IDLE_BYTES = 1024 * 1024;

/**
 * The same for the parts of a large transaction, which the session that merges them copies as well: it waits for six answers in
 * each part, and while it merges one, the next one is read.
 */
const PART_BYTES = 2 * 1024 * 1024;

/** How often the lag is stored while the log is followed. */
const LAG_MS = 5_000;

interface Pass {
  shared: SharedAttempts;
  copies: RunningCopies;
  sides: OpenSides;
  writer: ReplicationWriter;
  members: readonly Member[];
  reader_id: string;
  progress: { progressed: boolean };
  records: CommitRecords;
}

/**
 * One read of the log by the streams that are not being copied. Streams without a position are left to copies, if others
 * can go on meanwhile.
 * @returns whether nothing is left to do
 */
export async function readPass(
  shared: SharedAttempts,
  copies: RunningCopies,
  progress: Pass['progress'],
): Promise<boolean> {
  const attempts = shared.pending.filter((attempt) => !copies.has(attempt));
  if (attempts.length === 0) {
    if (copies.size === 0) return true;
    await copies.all();
    return false;
  }
  copies.renew();
  try {
    return await openAndRead(attempts, { shared, copies, progress });
  } catch (thrown) {
    throw withAttempts(thrown, attempts);
  }
}

async function openAndRead(
  attempts: readonly Attempt[],
  { shared, copies, progress }: Pick<Pass, 'shared' | 'copies' | 'progress'>,
): Promise<boolean> {
  const [leader] = attempts as [Attempt];
  const sides = await openSides(leader);
  const { destination } = sides;
  const prepared = await prepareAll(attempts, sides);
  const targets = prepared.map(({ target }, at) => ({
    target,
    warn: (code: string, message: string) => attempts[at]!.warn(code, message),
  }));
  const writer = await onSide('destination', () => destination.connector.openReplication!(destination.ctx, targets));
  const records = new CommitRecords();
  try {
    if (await recordFinished(shared, attempts, writer)) {
      await writer.abort();
      return false;
    }
    const reader_id = leader.claim.connection.id;
    const members = await membersOf(attempts, sides, { prepared, streams: writer.streams, reader_id });
    const copied = await toCopy(members, sides, writer);
    if (copied.length > 0) {
      await writer.abort();
      await estimateFirstReads({ members: copied, sides });
      copies.start(copied.map(({ attempt }) => attempt));
      return false;
    }
    await registerConsumers(
      leader.deps.db,
      attempts.map(({ claim }) => claim),
    );
    return await readLog({ shared, copies, sides, writer, members, reader_id, progress, records });
  } catch (error) {
    await records.abandon();
    await writer.abort().catch((failed) => leader.deps.log.warn({ err: failed }, 'writer could not be aborted'));
    throw error;
  }
}

/**
 * The streams that are read in full on their own: while others go on, or at a first read, which no table of the
 * destination can show in part. Any other first read is one commit.
 */
async function toCopy(
  members: readonly Member[],
  { source: { connector, ctx } }: OpenSides,
  { streams }: ReplicationWriter,
): Promise<readonly Member[]> {
  const { copiesAtOnce, canCopy } = connector.replication!;
  const placed = members.filter(({ request }) => request.state !== null);
  const isNew = members.filter(({ request }) => request.state === null);
  if (placed.length === 0) {
    const hasTables = streams.some(({ held }) => held?.has_table !== false);
    return copiesAtOnce && !hasTables ? isNew : [];
  }
  if (isNew.length === 0) return [];
  const request = { reader_id: members[0]!.attempt.claim.connection.id, streams: placed.map((one) => one.request) };
  return (await onSide('source', () => canCopy(ctx, request))) ? isNew : [];
}

/** An earlier attempt crashed after the destination's final commit: only our record is missing. */
async function recordFinished(
  shared: SharedAttempts,
  attempts: readonly Attempt[],
  { streams }: ReplicationWriter,
): Promise<boolean> {
  let any = false;
  for (const [at, attempt] of attempts.entries()) {
    const { committed } = streams[at]!;
    if (!committed?.finished) continue;
    if (!(await recordCommitted(attempt, committed))) throw lost();
    shared.finish(attempt);
    any = true;
  }
  return any;
}

async function readLog(pass: Pass): Promise<boolean> {
  const { members, shared, copies, sides, writer } = pass;
  const { source } = sides;
  const [{ attempt: leader }] = members as [Member];
  await estimateFirstReads(pass);
  const stop = new AbortController();
  const follow = following(pass, stop.signal);
  const committed = await committedStates(pass);
  const streams = members.map((member) => member.request);
  const request = { reader_id: pass.reader_id, streams, as_lines: linesOf(pass), committed, follow };
  copies.joined(members.map(({ attempt }) => attempt));
  for (const { attempt, request: one } of members) noteLogRead(attempt, one.state, members.length);
  const read = () => fromSource(source.connector.replication!.read(source.ctx, request));
  const states = await applyAll(pass, gather(read), { follows: follow !== undefined, stop });
  leader.signal.throwIfAborted();
  const isLast = !follow || shared.endsNow(copies.size === 0 && shared.pending.length === members.length);
  if (!isLast) {
    await commit(pass, states, { all: true });
    await pass.records.end();
    await writer.abort();
    return false;
  }
  if (copies.size > 0) {
    await commit(pass, states, { all: true });
    await pass.records.end();
    shared.abort(new WorkerStopping('The run goes on after its tables have been copied'));
    leader.signal.throwIfAborted();
  }
  await finish(pass, states, request);
  return true;
}

/** Streams whose values nothing looks at on their way. */
function linesOf({ members, writer }: Pass): ReadonlySet<number> {
  const asTheyAre = members.flatMap(({ prepared: { plan, target } }, at) => {
    const isMerged = target.mode !== 'append' && target.mode !== 'overwrite';
    return isMerged && plan.untouched && writer.streams[at]!.accepts_lines ? [at] : [];
  });
  return new Set(asTheyAre);
}

/** A continuous run follows the log, and so does any run while tables are copied. */
function following({ shared, copies, members }: Pass, stopped: AbortSignal): ReplicationRequest['follow'] {
  if (!shared.is_continuous && copies.size === 0) return undefined;
  const [{ attempt: leader }] = members as [Member];
  return {
    until: AbortSignal.any([stopped, leader.signal, copies.settled, ...shared.rollOvers(copies.size > 0)]),
  };
}

/** What all streams of the connection have reached, also those that this run does not read. */
async function committedStates({
  copies,
  members,
  reader_id,
}: Pass): Promise<NonNullable<ReplicationRequest['committed']>> {
  const [{ attempt: leader }] = members as [Member];
  const others = await statesOfOthers(
    leader.deps.db,
    reader_id,
    members.map(({ attempt }) => attempt.claim.stream.id),
  );
  return () => {
    const copied = copies.held();
    const own = members.flatMap(({ committed }) => committed ?? []);
    return copied && own.length === members.length ? [...others, ...copied, ...own] : null;
  };
}

async function estimateFirstReads({ members, sides: { source } }: Pick<Pass, 'members' | 'sides'>): Promise<void> {
  const { estimate } = source.connector;
  if (!estimate) return;
  for (const { attempt, request } of members) {
    if (request.state === null) {
      attempt.progress.estimated_rows ??= await onSide('source', () => estimate(source.ctx, request));
    }
  }
}

/** Applies what is read. @returns the states at its end, which are not committed yet */
async function applyAll(
  pass: Pass,
  batches: AsyncIterable<Gathered>,
  { follows, stop }: { follows: boolean; stop: AbortController },
): Promise<(StreamState | null)[]> {
  const { members } = pass;
  const [{ attempt: leader }] = members as [Member];
  const bytes = Math.min(commitBytes(members.length), leader.deps.config.CHECKPOINT_KB * 1024);
  const pace = new CheckpointPace('append_dedup', bytes);
  const parts = new CheckpointPace('append_dedup', bytes);
  let states: (StreamState | null)[] = members.map(({ request }) => request.state);
  // Once nothing is read ahead, what comes was read later.
  let emptied = Date.now();
  const commitBatch = batchCommits(pass);
  let committing: Promise<void> = Promise.resolve();
  // A read that follows the log would go on until its next change.
  const end = () => stop.abort();
  const apply = async ({ batch, hasMore }: Gathered) => {
    const not_before = emptied;
    if (!hasMore) emptied = Date.now();
    leader.signal.throwIfAborted();
    const written = await write(pass, batch);
    const isDue = (one: CheckpointPace, idle: number) => one.due(written) || (!hasMore && one.bytes >= idle);
    const [due, partDue] = [isDue(pace, IDLE_BYTES), isDue(parts, PART_BYTES)];
    if (!batch.states) {
      if (partDue) await applyPart(pass, parts);
      return;
    }
    states = batch.states;
    if (!due && !batch.complete && (!follows || hasMore)) return;
    pass.writer.mergeAhead?.();
    await committing;
    committing = commitBatch({ ...batch, states }, { not_before, pauses: follows && !hasMore });
    for (const one of [pace, parts]) one.reset();
    // Awaited before the next commit.
    committing.catch(end);
    if (!pass.writer.writes_while_committing) await committing;
  };
  try {
    for await (const gathered of batches) {
      await apply(gathered).catch((error) => {
        end();
        throw error;
      });
    }
    await committing;
  } finally {
    // Whatever ended the read, its rows are in place.
    await committing.catch(() => {});
  }
  return states;
}

/** Commits what has been written up to the end of a batch, and stores the lag now and then. */
function batchCommits(
  pass: Pass,
): (
  batch: ReplicatedBatch & Required<Pick<ReplicatedBatch, 'states'>>,
  at: { not_before: number; pauses: boolean },
) => Promise<void> {
  const attempts = pass.members.map(({ attempt }) => attempt);
  const [leader] = attempts as [Attempt];
  let stored = 0;
  return async ({ parts, states, complete, lag }, { not_before, pauses }) => {
    const all = parts.length === 0 || complete === true;
    // The next commit may be long in coming.
    const flushed = await (pauses || all ? commit(pass, states, { all }) : commitBetween(pass, states));
    if (!flushed || !lag || performance.now() - stored < LAG_MS) return;
    stored = performance.now();
    await noteLag(attempts, lag);
    if (lag.seconds !== undefined)
      await recordFreshness(leader.deps.db, idsOf(attempts), asOf(not_before, lag.seconds));
  };
}

/** In a large transaction, which would otherwise be merged only once all of it has arrived. */
async function applyPart({ writer }: Pass, parts: CheckpointPace): Promise<void> {
  if (writer.apply) await onSide('destination', () => writer.apply!());
  parts.reset();
}

/** A batch may have been on its way already. */
const ON_ITS_WAY_MS = 1000;
const asOf = (measured_ms: number, seconds: number) => new Date(measured_ms - ON_ITS_WAY_MS - 1000 * seconds);
const idsOf = (attempts: readonly Attempt[]) => attempts.map(({ claim }) => claim.stream.id);

/** @returns the bytes that were read */
async function write({ members, writer }: Pass, { parts }: ReplicatedBatch): Promise<number> {
  let bytes = 0;
  for (const { stream, batch } of parts) {
    const { attempt, map } = members[stream]!;
    attempt.recordRead(countRows(batch), batch.bytes);
    bytes += batch.bytes;
    const mapped = batch.lines ? batch : map(batch);
    if (mapped.lines || mapped.rows.length > 0) await onSide('destination', () => writer.write(stream, mapped));
  }
  return bytes;
}

/**
 * Commits at the destination. The streams that are not committed keep their earlier positions.
 * @returns whether the destination has this commit, and those before it, on its disk
 */
async function commit(
  pass: Pass,
  states: readonly (StreamState | null)[],
  { all }: { all: boolean },
): Promise<boolean> {
  const { writer, records } = pass;
  const counts = await onSide('destination', () => writer.commit(states, all));
  note(pass, states, counts);
  // Without a stream there was nothing to commit.
  if (counts.size > 0) records.flushed();
  return counts.size > 0;
}

/**
 * As `commit`, while others follow: the destination's disk would be waited for at each of them. What a crash of the
 * destination can still undo is not recorded, and so it is not confirmed to the source.
 */
async function commitBetween(pass: Pass, states: readonly (StreamState | null)[]): Promise<boolean> {
  const { writer, records } = pass;
  if (!writer.commitUnflushed || records.isFlushDue) return commit(pass, states, { all: false });
  note(pass, states, await onSide('destination', () => writer.commitUnflushed!(states)));
  return false;
}

function note(
  { members, progress, records }: Pass,
  states: readonly (StreamState | null)[],
  counts: ReadonlyMap<number, WriteCounts>,
): void {
  for (const [at, committed] of counts) {
    const member = members[at]!;
    member.attempt.signal.throwIfAborted();
    records.add(member, states[at] ?? null, committed);
  }
  progress.progressed ||= counts.size > 0;
}

/** The final commit of the run. */
async function finish(
  { members, writer, sides, shared, records }: Pass,
  states: readonly (StreamState | null)[],
  request: ReplicationRequest,
): Promise<void> {
  const ended = performance.now();
  const counts = await onSide('destination', () => writer.finish(states));
  for (const [at, member] of members.entries()) records.add(member, states[at] ?? null, counts[at]!);
  records.flushed();
  await records.end();
  for (const [at, { attempt }] of members.entries()) noteCommit(attempt, counts[at]!, ended);
  for (const { attempt, prepared } of members) await recordLoaded(attempt.deps.db, attempt.claim, prepared);
  const attempts = members.map(({ attempt }) => attempt);
  const streams = request.streams.map((one, at) => ({ ...one, state: states[at] ?? null }));
  const { connector: source, ctx: sourceContext } = sides.source;
  await confirmLog(attempts, { source, sourceContext, request: { ...request, streams } });
  for (const attempt of attempts) shared.finish(attempt);
}
