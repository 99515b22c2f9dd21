import type { Batch, ReplicationWriter, StreamState, WriteCounts } from '../../../contract/connector.ts';
import type { PgSession } from '../../connection/session.ts';
import { BesideCommits } from '../merge/beside-commit.ts';
import type { CommitOptions, ReplicationSession } from './session.ts';

/**
 * Commits several tables together, over one session, or over two that take turns: while one of them merges and commits, the
 * other one stages the rows of the next commit, and merges them as well if the two have no key in common. Commits follow one
 * another, so a crash leaves what it would with one session.
 */
export class PgReplicationWriter implements ReplicationWriter {
  readonly streams: ReplicationSession['streams'];
  readonly writes_while_committing: boolean;
  readonly commitUnflushed: ReplicationWriter['commitUnflushed'];
  #current: ReplicationSession;
  #other: ReplicationSession | null = null;
  /** The second session was refused. */
  #alone = false;
  /** The commit that is under way. `staged`: it merges for a while. */
  #committing: { session: ReplicationSession; staged: boolean; done: Promise<unknown> } | null = null;
  #closed = false;
  readonly #beside = new BesideCommits();

  constructor(
    first: ReplicationSession,
    /** Called once. Null: there is no second session. */
    private readonly open: () => Promise<PgSession | null>,
    /** A commit need not wait for the disk. */
    flushesLater: boolean,
  ) {
    this.#current = first;
    this.streams = first.streams;
    this.writes_while_committing = first.streams.every(({ takesTurns }) => takesTurns);
    if (flushesLater) this.commitUnflushed = (states) => this.#commit(states, { flushes: false });
  }

  async write(stream: number, batch: Batch): Promise<void> {
    if (this.#committing?.session === this.#current) await this.#turn(this.#committing);
    await this.#current.write(stream, batch);
  }

  async apply(): Promise<void> {
    await this.#committing?.done;
    await this.#current.apply();
  }

  mergeAhead(): void {
    const before = this.#committing;
    if (!before || before.session === this.#current) return;
    if (!this.#current.hasStaged || !this.#current.isDisjointFrom(before.session)) return;
    this.#beside.complete(this.#current, before.done);
  }

  commit(states: readonly (StreamState | null)[], all = false): Promise<Map<number, WriteCounts>> {
    return this.#commit(states, { all });
  }

  async finish(states: readonly (StreamState | null)[]): Promise<WriteCounts[]> {
    const counts = await this.#current.finish(states);
    await this.#other?.close();
    return counts;
  }

  async abort(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#current.close(), this.#other?.close()]);
  }

  async #commit(states: readonly (StreamState | null)[], options: CommitOptions): Promise<Map<number, WriteCounts>> {
    const session = this.#current;
    const staged = session.hasStaged;
    const done = this.#beside.completed.then(() => session.commit(states, options));
    this.#committing = { session, staged, done };
    try {
      return await done;
    } finally {
      this.#committing = null;
    }
  }

  /** Small commits are over sooner than a session is opened. */
  async #turn({ staged, done }: { staged: boolean; done: Promise<unknown> }): Promise<void> {
    const next = staged ? await this.#another() : null;
    if (!next) return void (await done);
    [this.#current, this.#other] = [next, this.#current];
    // Opened while the writer was aborted.
    if (this.#closed) await next.close();
  }

  async #another(): Promise<ReplicationSession | null> {
    if (this.#other || this.#alone || !this.writes_while_committing) return this.#other;
    const session = await this.open();
    this.#alone = session === null;
    return session && this.#current.beside(session);
  }
}
