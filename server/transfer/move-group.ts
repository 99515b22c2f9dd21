import type {
  AnySource,
  Batch,
  ConnectorContext,
  GroupWriter,
  ReadRequest,
  ReplicationRequest,
  StreamState,
  WriteCounts,
} from '../connectors/contract/connector.ts';
import { ConnectorError, FencedError, RetryableError } from '../connectors/contract/errors.ts';
import { StreamsFailed } from '../connectors/contract/replication.ts';
import { fromSource, onSide, SideError } from '../connector-runtime/side-error.ts';
import { recordCheckpoint } from '../runs/claim-stream.ts';
import { type Attempt, ClaimLost } from './attempt.ts';
import { confirmGroup, registerConsumers } from './cdc-consumers.ts';
import { CheckpointPace } from './pace/checkpoint-pace.ts';
import { recordColumns } from './column-history.ts';
import { resumeState } from './destination-position.ts';
import { createMapper } from './mapping.ts';
import { openSides, type PreparedStream, prepareStream, recordCommitted, stateVersion } from './move-stream.ts';
import { prefetch } from './pace/prefetch.ts';

/** After this many attempts without progress, a stream whose error may be temporary no longer holds up the others. */
const PATIENT_ATTEMPTS = 3;

/**
 * Moves streams that are read from one change log to the end of the log, with common commits: what is visible at the
 * destination after each of them is a state that the source had. A stream that fails is left out and the others go on.
 * @returns the errors of streams that were left out
 */
export async function moveGroup(attempts: readonly Attempt[]): Promise<Map<Attempt, unknown>> {
  const failed = new Map<Attempt, unknown>();
  let rest = [...attempts];
  while (rest.length > 0) {
    try {
      const done = await moveTogether(rest);
      rest = rest.filter((attempt) => !done.has(attempt));
    } catch (thrown) {
      const errors = errorsOf(thrown, rest);
      const left = [...errors].filter(([attempt, error]) => isLeftOut(attempt, error));
      if (left.length === 0) throw errors.values().next().value ?? thrown;
      for (const [attempt, error] of left) failed.set(attempt, error);
      rest = rest.filter((attempt) => !failed.has(attempt));
    }
  }
  return failed;
}

/** The errors of single streams in what was thrown. */
function errorsOf(thrown: unknown, attempts: readonly Attempt[]): Map<Attempt, unknown> {
  const origin = thrown instanceof SideError ? thrown.origin : null;
  const error = thrown instanceof SideError ? thrown.cause : thrown;
  if (!(error instanceof StreamsFailed)) return new Map();
  return new Map(
    Array.from(error.failures, ([at, cause]) => [
      attempts[at]!,
      origin === null || cause instanceof SideError ? cause : new SideError(origin, cause),
    ]),
  );
}

function isLeftOut({ signal, claim }: Attempt, thrown: unknown): boolean {
  const error = thrown instanceof SideError ? thrown.cause : thrown;
  if (signal.aborted || error instanceof FencedError || error instanceof ClaimLost) return false;
  const lasts = error instanceof ConnectorError && !error.retryable;
  return lasts || claim.stream_run.attempts_without_progress >= PATIENT_ATTEMPTS;
}

interface Member {
  attempt: Attempt;
  prepared: PreparedStream;
  map(batch: Batch): Batch;
  request: ReadRequest;
  state_version: number;
}

/** @returns the attempts that are done: all, unless an earlier attempt had finished some of them */
async function moveTogether(attempts: readonly Attempt[]): Promise<Set<Attempt>> {
  const [leader] = attempts as [Attempt];
  const { source, destination } = await openSides(leader);
  const prepared = await ofEach(attempts, async (attempt) => {
    const stream = await prepareStream(attempt, source, destination.connector);
    if (stream.requestFrom(null).reader_id !== undefined) return stream;
    const { name } = stream.schema;
    throw new RetryableError(
      'table_changed',
      `${name} is no longer read from the log. The next attempt reads its table`,
    );
  });
  const targets = prepared.map(({ target }, at) => ({
    target,
    warn: (code: string, message: string) => attempts[at]!.warn(code, message),
  }));
  const writer = await onSide('destination', () => destination.connector.openGroup!(destination.ctx, targets));
  try {
    const finished = await recordFinished(attempts, writer);
    if (finished.size > 0) {
      await writer.abort();
      return finished;
    }
    const reader_id = leader.claim.connection.id;
    const { canResume } = source.connector;
    const members = await ofEach(attempts, async (attempt, at): Promise<Member> => {
      const { requestFrom, plan } = prepared[at]!;
      const serves = async (state: StreamState) => {
        const request = requestFrom(state);
        const inGroup = canResume?.(source.ctx, { ...request, reader_id }) ?? true;
        return onSide('source', async () => (await inGroup) || canResume!(source.ctx, request));
      };
      const opened = writer.streams[at]!;
      const request = requestFrom(await resumeState(attempt, opened, serves));
      const keepsHistory = attempt.claim.stream.destination_sync_mode === 'append';
      const map = createMapper(plan, attempt.deps.secrets.maskKeys(attempt.claim.run.account_id), keepsHistory);
      return { attempt, prepared: prepared[at]!, map, request, state_version: stateVersion(attempt, opened) };
    });
    await registerConsumers(
      leader.deps.db,
      attempts.map(({ claim }) => claim),
    );
    await transferGroup({ members, writer, source: source.connector, sourceContext: source.ctx, reader_id });
    return new Set(attempts);
  } catch (error) {
    await writer.abort().catch((failed) => leader.deps.log.warn({ err: failed }, 'writer could not be aborted'));
    throw error;
  }
}

/** Runs the work for each stream, one after the other. @throws StreamsFailed with the errors of all that fail */
async function ofEach<Result>(
  attempts: readonly Attempt[],
  work: (attempt: Attempt, at: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const failures = new Map<number, unknown>();
  for (const [at, attempt] of attempts.entries()) {
    attempt.signal.throwIfAborted();
    try {
      results.push(await work(attempt, at));
    } catch (error) {
      failures.set(at, error);
    }
  }
  if (failures.size > 0) throw new StreamsFailed(failures);
  return results;
}

/** An earlier attempt crashed after the destination's final commit: only our record is missing. */
async function recordFinished(attempts: readonly Attempt[], { streams }: GroupWriter): Promise<Set<Attempt>> {
  const finished = new Set<Attempt>();
  for (const [at, attempt] of attempts.entries()) {
    const { committed } = streams[at]!;
    if (!committed?.finished) continue;
    if (!(await recordCommitted(attempt, committed))) throw lost();
    finished.add(attempt);
  }
  return finished;
}

const lost = () => new ClaimLost('Another worker holds a stream of this group');

interface GroupTransfer {
  members: Member[];
  writer: GroupWriter;
  source: AnySource;
  sourceContext: ConnectorContext<unknown>;
  reader_id: string;
}

async function transferGroup(group: GroupTransfer): Promise<void> {
  const { members, writer, source, sourceContext, reader_id } = group;
  const [{ attempt: leader }] = members as [Member];
  await estimateFirstReads(group);
  const request = { reader_id, streams: members.map((member) => member.request) };
  const pace = new CheckpointPace('append_dedup', leader.deps.config.CHECKPOINT_KB * 1024);
  let states: (StreamState | null)[] = request.streams.map(({ state }) => state);
  const batches = () => fromSource(source.replication!.read(sourceContext, request));
  for await (const batch of prefetch(batches)) {
    leader.signal.throwIfAborted();
    let bytes = 0;
    for (const { stream, batch: part } of batch.parts) {
      const { attempt, map } = members[stream]!;
      attempt.recordRead(countRows(part), part.bytes);
      bytes += part.bytes;
      const mapped = map(part);
      if (mapped.rows.length > 0) await onSide('destination', () => writer.write(stream, mapped));
    }
    const due = pace.due(bytes);
    if (!batch.states) continue;
    states = batch.states;
    if (!due && !batch.complete) continue;
    await commit(group, states);
    pace.reset();
  }
  leader.signal.throwIfAborted();
  const counts = await onSide('destination', () => writer.finish(states));
  for (const [at, member] of members.entries()) await record(member, states[at] ?? null, counts[at]!);
  for (const { attempt, prepared } of members) await recordColumns(attempt.deps.db, attempt.claim, prepared.plan);
  const reached: ReplicationRequest = {
    reader_id,
    streams: request.streams.map((one, at) => ({ ...one, state: states[at] ?? null })),
  };
  const attempts = members.map(({ attempt }) => attempt);
  await confirmGroup(attempts, { source, sourceContext, request: reached });
}

async function estimateFirstReads({ members, source, sourceContext }: GroupTransfer): Promise<void> {
  const { estimate } = source;
  if (!estimate) return;
  for (const { attempt, request } of members) {
    if (request.state === null) {
      attempt.progress.estimated_rows ??= await onSide('source', () => estimate(sourceContext, request));
    }
  }
}

/** Commits at the destination, then records it. The streams that are not recorded keep their earlier positions. */
async function commit({ members, writer }: GroupTransfer, states: readonly (StreamState | null)[]): Promise<void> {
  const counts = await onSide('destination', () => writer.commit(states));
  for (const [at, committed] of counts) {
    const member = members[at]!;
    member.attempt.signal.throwIfAborted();
    await record(member, states[at] ?? null, committed);
  }
}

async function record(member: Member, state: StreamState | null, counts: WriteCounts): Promise<void> {
  const { attempt } = member;
  Object.assign(attempt.progress, counts);
  member.state_version += 1;
  const { state_version } = member;
  if (!(await recordCheckpoint(attempt.deps.db, attempt.claim, { state, state_version, counts }))) throw lost();
}

/** A truncate is a change without a row. */
const countRows = ({ rows, changes }: Batch) =>
  changes ? changes.filter(({ operation }) => operation !== 'truncate').length : rows.length;
