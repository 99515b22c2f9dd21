import type { StagedChanges } from '../../kits/sql/merge/staged-changes.ts';
import type { RowLoad } from '../../kits/sql/writer.ts';
import { type AheadLoad, BesideCommits } from './merge/beside-commit.ts';

export type TurnLoad = RowLoad & AheadLoad;

/**
 * Loads rows over one session, or over two that take turns: while one merges and commits, the other one copies the rows
 * of the next commit and merges them as well. Commits follow one another, each with its own state, so a crash leaves what
 * it would with one session. The first of two merges never waits for the second one for long, which is undone then and
 * repeated after its commit.
 */
export class LoadTurns<Load extends TurnLoad> implements RowLoad {
  #current: Load;
  #other: Load | null = null;
  /** The second session was refused. */
  #alone = false;
  /** The load whose commit is under way, and that commit. */
  #committing: { load: Load; done: Promise<void> } | null = null;
  readonly #beside = new BesideCommits();
  #closed = false;

  constructor(
    first: Load,
    /** Called once. Null: there is no second session. */
    private readonly open: () => Promise<Load | null>,
  ) {
    this.#current = first;
  }

  get current(): Load {
    return this.#current;
  }

  get incremental(): boolean {
    return this.#current.incremental;
  }

  async prepare(): Promise<void> {
    if (this.#committing?.load === this.#current) await this.#turn(this.#committing.done);
    await this.#current.prepare();
  }

  add(...given: Parameters<RowLoad['add']>): Promise<void> {
    return this.#current.add(...given);
  }

  reject(...given: Parameters<RowLoad['reject']>): Promise<void> {
    return this.#current.reject(...given);
  }

  changes(): StagedChanges {
    return this.#current.changes();
  }

  truncate(): Promise<void> {
    return this.#current.truncate();
  }

  async commit(...given: Parameters<RowLoad['commit']>): Promise<void> {
    const load = this.#current;
    const done = this.#beside.completed.then(() => load.commit(...given));
    this.#committing = { load, done };
    await done;
    this.#committing = null;
  }

  /** Brings what was copied into place while the commit before it is under way. The next call is `commit`. */
  completeAhead(): void {
    const before = this.#committing;
    if (before && before.load !== this.#current) this.#beside.complete(this.#current, before.done);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#current.close(), this.#other?.close()]);
  }

  async abort(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#current.abort(), this.#other?.abort()]);
  }

  translate(error: unknown): unknown {
    return this.#current.translate(error);
  }

  async #turn(committing: Promise<void>): Promise<void> {
    const next = this.#other ?? (this.#alone ? null : await this.open());
    this.#alone = next === null;
    if (!next) return committing;
    [this.#current, this.#other] = [next, this.#current];
    // Opened while the writer was closed.
    if (this.#closed) await next.abort();
  }
}
