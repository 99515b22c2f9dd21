import { type JobOptions, LimitedProcess } from './limited-process.ts';

const IDLE_MS = 5 * 60_000;
/** A process that has served this many jobs is replaced: memory that a job has left behind goes with it. */
const MAX_JOBS = 200;
const WAIT_MS = 20_000;

export interface PoolOptions {
  /** Processes at once. */
  size: number;
  /** Of these, for jobs of one owner: one account must not keep the others waiting. */
  size_per_owner: number;
}

/** All places were taken for too long. */
export class PoolBusy extends Error {
  override name = 'PoolBusy';
}

interface Waiting {
  owner: string;
  enter(): void;
}

/**
 * Runs jobs in child processes. A process is started when a job finds none idle, is kept warm for the next one, and ends
 * after five idle minutes.
 */
export class ProcessPool<Job, Item> {
  readonly #idle: { process: LimitedProcess<Job, Item>; jobs: number; timer: Timer }[] = [];
  readonly #running = new Map<string, number>();
  readonly #waiting: Waiting[] = [];

  constructor(
    private readonly program: string,
    private readonly options: PoolOptions,
  ) {}

  /** The items of a job. @throws PoolBusy, and what LimitedProcess.run throws */
  async *run(job: Job, options: JobOptions & { owner: string }): AsyncGenerator<Item> {
    await this.#enter(options.owner);
    try {
      const kept = this.#take();
      const process = kept?.process ?? new LimitedProcess<Job, Item>(this.program);
      try {
        yield* process.run(job, options);
      } finally {
        this.#keep(process, (kept?.jobs ?? 0) + 1);
      }
    } finally {
      this.#leave(options.owner);
    }
  }

  #take() {
    for (let kept = this.#idle.pop(); kept; kept = this.#idle.pop()) {
      clearTimeout(kept.timer);
      if (kept.process.alive) return kept;
    }
    return null;
  }

  #keep(process: LimitedProcess<Job, Item>, jobs: number): void {
    if (!process.alive) return;
    if (jobs >= MAX_JOBS) return void process.end();
    const end = () => {
      const at = this.#idle.findIndex((one) => one.process === process);
      if (at >= 0) this.#idle.splice(at, 1);
      void process.end();
    };
    this.#idle.push({ process, jobs, timer: setTimeout(end, IDLE_MS).unref() });
  }

  #hasPlace(owner: string): boolean {
    const all = [...this.#running.values()].reduce((sum, count) => sum + count, 0);
    return all < this.options.size && (this.#running.get(owner) ?? 0) < this.options.size_per_owner;
  }

  async #enter(owner: string): Promise<void> {
    if (!this.#hasPlace(owner)) await this.#wait(owner);
    else this.#count(owner, 1);
  }

  async #wait(owner: string): Promise<void> {
    const place = Promise.withResolvers<void>();
    const one: Waiting = { owner, enter: place.resolve };
    this.#waiting.push(one);
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(one), 1);
      place.reject(new PoolBusy('All processes are busy'));
    }, WAIT_MS);
    await place.promise.finally(() => clearTimeout(timer));
  }

  #leave(owner: string): void {
    this.#count(owner, -1);
    const next = this.#waiting.findIndex((one) => this.#hasPlace(one.owner));
    const [one] = next < 0 ? [] : this.#waiting.splice(next, 1);
    if (!one) return;
    this.#count(one.owner, 1);
    one.enter();
  }

  #count(owner: string, change: number): void {
    const count = (this.#running.get(owner) ?? 0) + change;
    if (count > 0) this.#running.set(owner, count);
    else this.#running.delete(owner);
  }
}
