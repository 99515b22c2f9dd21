import { setTimeout as sleep } from 'node:timers/promises';

/** A load that waits for the commit before it looks whether it is in its way: first after this time, then less often. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 2_000;

/** What can bring its rows into place while the commit before it is under way in another session. */
export interface AheadLoad {
  /** The next commit finds the rows in place. False: they have to wait for the commit before it. */
  completeAhead(): Promise<boolean>;
  /** Another session waits for what `completeAhead` has done. */
  isWaitedFor(): Promise<boolean>;
  undoAhead(): Promise<void>;
}

/** Loads of one writer that are completed beside the commit before theirs. */
export class BesideCommits {
  /** They were in one another's way: that costs time, and it would happen again. */
  #collided = false;
  #completed: Promise<void> = Promise.resolve();

  /** Begins to complete a load while `before`, a commit, is under way. */
  complete(load: AheadLoad, before: Promise<unknown>): void {
    if (this.#collided) return;
    this.#completed = completeBeside(load, before).then(
      (completed) => void (this.#collided = !completed),
      // What fails here fails in the commit, too.
      () => {},
    );
  }

  /** What the commit of that load waits for. */
  get completed(): Promise<void> {
    return this.#completed;
  }
}

/**
 * Resolves at the end of the commit, which never waits for the load for long: the load is undone then.
 * @returns false: the rows are not in place
 */
async function completeBeside(load: AheadLoad, before: Promise<unknown>): Promise<boolean> {
  const ended = before.then(
    () => true,
    () => true,
  );
  let completed = await load.completeAhead();
  for (let pause = FIRST_PAUSE_MS; completed; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    if (await Promise.race([ended, sleep(pause, false, { ref: false })])) return true;
    if (!(await load.isWaitedFor())) continue;
    await load.undoAhead();
    completed = false;
  }
  return false;
}
