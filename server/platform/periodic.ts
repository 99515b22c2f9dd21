export interface Periodic {
  /** Starts a turn now; during a turn, another one right after it. */
  wake(): void;
  /** No further turn starts. Resolves once the current one has ended. */
  stop(): Promise<void>;
  /** What the last turn failed with; null after a turn that succeeded. */
  readonly last_error: unknown;
}

export interface PeriodicOptions {
  /** Pause between the end of one turn and the start of the next. */
  every_ms: number;
  /** Called once per failed turn. The loop goes on. */
  onError(error: unknown): void;
  /** True: the first turn starts at once instead of after the first pause. */
  immediately?: boolean;
  /** Share of the pause by which it varies, so that many processes do not query in step. Default 0.1. */
  jitter?: number;
}

/**
 * The loops of an idle process take their turns together: to wake up costs it more than the turn of a loop. Processes
 * start at different moments, so they are not in step with one another.
 */
const STEP_MS = 1000;

/** Milliseconds until the next turn. A pause of a second or more ends at a full second of the process. */
export function pauseOf(every_ms: number, { jitter, now }: { jitter: number; now: number }): number {
  const pause = every_ms * (1 + jitter * (2 * Math.random() - 1));
  if (every_ms < STEP_MS) return pause;
  return Math.round((now + pause) / STEP_MS) * STEP_MS - now;
}

/**
 * Runs `work` again and again until it is stopped. A turn never starts before the previous one has ended, so a slow
 * database does not pile up turns. `work` receives a signal that aborts when the loop is stopped.
 */
export function periodic(work: (signal: AbortSignal) => Promise<unknown>, options: PeriodicOptions): Periodic {
  const { every_ms, onError, immediately = false, jitter = 0.1 } = options;
  const stopping = new AbortController();
  let timer: Timer | undefined;
  let turn: Promise<void> | null = null;
  let again = false;
  let last_error: unknown = null;

  async function takeTurns(): Promise<void> {
    do {
      again = false;
      try {
        await work(stopping.signal);
        last_error = null;
      } catch (error) {
        last_error = error;
        onError(error);
      }
    } while (again && !stopping.signal.aborted);
  }

  function start(): void {
    clearTimeout(timer);
    if (stopping.signal.aborted) return;
    turn = takeTurns().finally(() => {
      turn = null;
      schedule();
    });
  }

  function schedule(): void {
    if (stopping.signal.aborted) return;
    timer = setTimeout(start, pauseOf(every_ms, { jitter, now: performance.now() }));
  }

  if (immediately) start();
  else schedule();

  return {
    wake() {
      if (turn) again = true;
      else start();
    },
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await turn;
    },
    get last_error() {
      return last_error;
    },
  };
}
