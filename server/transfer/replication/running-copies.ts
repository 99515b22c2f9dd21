import { fromSource, onSide } from '../../connector-runtime/side-error.ts';
import type { ByteStream, StreamState, TableCopies, Writer } from '../../connectors/contract/connector.ts';
import { recordCheckpoint } from '../../runs/claim-stream.ts';
import { type Attempt, WorkerStopping } from '../attempt.ts';
import { byteMapper, counted, sharedFormat, takingAll } from '../byte-lane.ts';
import { recordLoaded } from '../column-history.ts';
import { openSides, type PreparedStream, stateVersion } from '../move-stream.ts';
import { prefetch } from '../pace/prefetch.ts';
import { AttemptsFailed, withAttempts } from './attempts-failed.ts';
import { registerConsumers } from './cdc-consumers.ts';
import { countRows, lost, mapperOf, prepareAll } from './members.ts';
import { parkIfUnappliable } from './parking.ts';
import type { SharedAttempts } from './shared-attempts.ts';
import { truncated } from '../../connectors/contract/cells.ts';

/**
 * Tables that are read in full while the other streams of the run go on. A copy is committed on its own, with the
 * position of its snapshot. The log is kept from there until the stream has joined the others, which read it again from
 * there without it.
 */
export class RunningCopies {
  readonly #running = new Map<Attempt, Promise<void>>();
  /** From where on the log is needed; null: not known yet. Until the stream has joined. */
  readonly #from = new Map<Attempt, StreamState | null>();
  #settled = new AbortController();

  constructor(private readonly shared: SharedAttempts) {}

  get size(): number {
    return this.#running.size;
  }

  has(attempt: Attempt): boolean {
    return this.#running.has(attempt);
  }

  /** Aborted once one of the copies that run now has ended. */
  get settled(): AbortSignal {
    return this.#settled.signal;
  }

  /** The lowest states that the log is kept for; null while they are not known. */
  held(): StreamState[] | null {
    const states = [...this.#from.values()];
    return states.includes(null) ? null : (states as StreamState[]);
  }

  /** The streams are read with the others now. */
  joined(attempts: readonly Attempt[]): void {
    for (const attempt of attempts) this.#from.delete(attempt);
  }

  start(attempts: readonly Attempt[]): void {
    const work = this.#copy(attempts);
    for (const attempt of attempts) {
      attempt.note('copying', `Copies all rows of ${attempt.claim.stream.name} beside the other streams`);
      this.#from.set(attempt, null);
      this.#running.set(attempt, work);
    }
  }

  /** Resolves once all of the copies have ended. */
  async all(): Promise<void> {
    await Promise.allSettled(this.#running.values());
  }

  /** Call it at the start of a pass: what has settled before is among its streams. */
  renew(): void {
    this.#settled = new AbortController();
  }

  async close(): Promise<void> {
    for (const attempt of this.#running.keys()) attempt.abort(new WorkerStopping('The run does not go on'));
    await Promise.allSettled(this.#running.values());
  }

  async #copy(attempts: readonly Attempt[]): Promise<void> {
    let copies: TableCopies | null = null;
    try {
      const [leader] = attempts as [Attempt];
      const sides = await openSides(leader);
      const prepared = await prepareAll(attempts, sides);
      const { db } = leader.deps;
      await registerConsumers(
        db,
        attempts.map(({ claim }) => claim),
      );
      const request = {
        reader_id: leader.claim.connection.id,
        streams: prepared.map(({ requestFrom }) => requestFrom(null)),
      };
      const opened = await onSide('source', () => sides.source.connector.replication!.copy(sides.source.ctx, request));
      copies = opened;
      for (const [at, attempt] of attempts.entries()) this.#from.set(attempt, opened.state(at));
      await inParallel(leader.claim.connection.max_parallel_streams, attempts.length, async (at) => {
        await this.#one(attempts[at]!, () => copyTable(attempts[at]!, prepared[at]!, { copies: opened, at }));
      });
    } catch (thrown) {
      const error = withAttempts(thrown, attempts);
      const failures = error instanceof AttemptsFailed ? error.failures : new Map(attempts.map((one) => [one, error]));
      for (const [attempt, cause] of failures) await this.#one(attempt, () => Promise.reject(cause));
    } finally {
      await copies?.close();
      for (const attempt of attempts) this.#end(attempt);
    }
  }

  async #one(attempt: Attempt, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#from.delete(attempt);
      // What ends the run ends this attempt as well.
      if (attempt.signal.aborted && attempt.signal.reason instanceof WorkerStopping) return;
      await parkIfUnappliable(attempt, error);
      await this.shared.fail(attempt, error);
    } finally {
      this.#end(attempt);
    }
  }

  #end(attempt: Attempt): void {
    if (this.#from.get(attempt) === null) this.#from.delete(attempt);
    if (this.#running.delete(attempt)) this.#settled.abort();
  }
}

/** Copies one table and commits it with the state after it. */
async function copyTable(
  attempt: Attempt,
  prepared: PreparedStream,
  { copies, at }: { copies: TableCopies; at: number },
): Promise<void> {
  const { claim, deps, signal } = attempt;
  const { destination } = await openSides(attempt);
  attempt.watch();
  const target = { ...prepared.target, whole_table: true };
  const writer = await onSide('destination', () => destination.connector.open(destination.ctx, target));
  try {
    await moveRows(attempt, prepared, { copies, at, writer });
    signal.throwIfAborted();
    const state = copies.state(at);
    const counts = await onSide('destination', () => writer.checkpoint(state));
    Object.assign(attempt.progress, counts);
    const state_version = stateVersion(attempt, writer) + 1;
    if (!(await recordCheckpoint(deps.db, claim, { state, state_version, counts }))) throw lost();
    await recordLoaded(deps.db, claim, prepared);
  } finally {
    await writer.abort().catch((failed) => deps.log.warn({ err: failed }, 'writer could not be aborted'));
  }
}

interface Copying {
  copies: TableCopies;
  at: number;
  writer: Writer;
}

async function moveRows(attempt: Attempt, prepared: PreparedStream, { copies, at, writer }: Copying): Promise<void> {
  const { plan, target } = prepared;
  const offered = target.mode === 'append_dedup' && copies.copy ? (copies.byteFormats?.(at) ?? []) : [];
  const format = sharedFormat(plan, offered, writer);
  if (format) return moveEncoded(attempt, prepared, { writer, stream: copies.copy!(at, format) });
  // Creates the table, even if no row comes: a missing one would be copied again and again.
  await onSide('destination', () => writer.write({ rows: [], bytes: 0 }));
  const map = mapperOf(attempt, prepared);
  for await (const batch of prefetch(() => fromSource(copies.read(at)))) {
    attempt.signal.throwIfAborted();
    attempt.recordRead(countRows(batch), batch.bytes);
    const mapped = map(batch);
    if (mapped.rows.length > 0) await onSide('destination', () => writer.write(mapped));
  }
}

/** Decoding and encoding the rows would take most of the worker's time. */
async function moveEncoded(
  attempt: Attempt,
  { plan, target }: PreparedStream,
  { writer, stream }: { writer: Writer; stream: ByteStream },
): Promise<void> {
  const { map, rowsEnd, reuse } = byteMapper(attempt, plan, stream);
  async function* mapped() {
    for await (const chunk of fromSource(counted(attempt, stream))) yield map(chunk);
  }
  await takingAll(mapped(), (chunks) =>
    onSide('destination', async () => {
      await writer.write(truncated(target.columns.length));
      await writer.pipe!({ ...stream, chunks, rowsEnd, reuse });
    }),
  );
}

async function inParallel(limit: number, count: number, work: (at: number) => Promise<void>): Promise<void> {
  let next = 0;
  const turns = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(limit, count) }, turns));
}
