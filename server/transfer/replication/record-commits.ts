import type { StreamState, WriteCounts } from '../../connectors/contract/connector.ts';
import { type Checkpoint, recordCheckpoints } from '../../runs/claim-stream.ts';
import { lost, type Member } from './members.ts';

/** The destination's commit is the truth, so several of them may be recorded as one. */
const EVERY_MS = 200;

/**
 * How long commits need not wait for the disk, one after the other. The first one does: an attempt that ends soon after it has
 * recorded that it came further.
 */
const UNFLUSHED_MS = 1_000;

/** Records commits of the destination, the newest of each stream, while the next rows are applied. */
export class CommitRecords {
  /** A crash of the destination may undo them. */
  #unflushed = new Map<Member, Checkpoint>();
  #flushed = Number.NEGATIVE_INFINITY;
  #waiting = new Map<Member, Checkpoint>();
  #running: Promise<void> | null = null;
  #failed: { error: unknown } | null = null;
  #timer: Timer | null = null;
  #recorded = Number.NEGATIVE_INFINITY;

  /** @throws what an earlier record failed with */
  add(member: Member, state: StreamState | null, counts: WriteCounts): void {
    this.#check();
    Object.assign(member.attempt.progress, counts);
    member.state_version += 1;
    this.#unflushed.set(member, { state, state_version: member.state_version, counts });
  }

  /** What was added is on the destination's disk, and may be recorded. */
  flushed(): void {
    for (const [member, checkpoint] of this.#unflushed) this.#waiting.set(member, checkpoint);
    this.#unflushed.clear();
    this.#flushed = performance.now();
    this.#schedule();
  }

  get isFlushDue(): boolean {
    return performance.now() - this.#flushed >= UNFLUSHED_MS;
  }

  /** The streams of one commit are added one after the other, so even the first record waits for the others. */
  #schedule(): void {
    if (this.#running || this.#timer || this.#waiting.size === 0) return;
    const pause = this.#recorded + EVERY_MS - performance.now();
    this.#timer = setTimeout(() => this.#start(), Math.max(0, pause));
  }

  /** Resolves once everything is recorded. */
  async end(): Promise<void> {
    this.#stopTimer();
    await this.#running;
    this.#start();
    await this.#running;
    this.#check();
  }

  /** As `end`, after an error that matters more. */
  async abandon(): Promise<void> {
    await this.end().catch(() => {});
  }

  #start(): void {
    this.#timer = null;
    const commits = this.#waiting;
    if (commits.size === 0 || this.#failed) return;
    this.#waiting = new Map();
    this.#recorded = performance.now();
    this.#running = record(commits)
      .catch((error: unknown) => void (this.#failed ??= { error }))
      .finally(() => {
        this.#running = null;
        this.#schedule();
      });
  }

  #stopTimer(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #check(): void {
    if (this.#failed) throw this.#failed.error;
  }
}

async function record(commits: ReadonlyMap<Member, Checkpoint>): Promise<void> {
  const [leader] = commits.keys();
  if (!leader) return;
  const rows = Array.from(commits, ([{ attempt }, checkpoint]) => ({ claim: attempt.claim, ...checkpoint }));
  if (!(await recordCheckpoints(leader.attempt.deps.db, rows))) throw lost();
  for (const [member, { state }] of commits) member.committed = state;
}
