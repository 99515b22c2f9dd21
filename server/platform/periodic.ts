import { nextPlace, wakeLater } from './steps.ts';

export interface Periodic {
  /** Starts a turn now; during a turn, another one right after it. */
  wake(): void;
  /** No further turn starts. Resolves once the current one has ended. */
  stop(): Promise<void>;
  /** What the last turn failed with; null after a turn that succeeded. */
  readonly last_error: unknown;
}

export interface PeriodicOptions {
  /**
   * Pause between the end of one turn and the start of the next. Loops that pause for one to ten seconds begin at multiples
   * of their pause, so a turn that takes longer than half of it makes the next pause up to half longer or shorter.
   */
  every_ms: number;
  /** Called once per failed turn. The loop goes on. */
  onError(error: unknown): void;
  /** True: the first turn starts at once instead of after the first pause. */
  immediately?: boolean;
  /** Share of the pause by which it varies, so that many processes do not query in step. Default 0.1. */
  jitter?: number;
}

/**
 * Runs `work` again and again until it is stopped. A turn never starts before the previous one has ended, so a slow
 * database does not pile up turns. `work` receives a signal that aborts when the loop is stopped. Loops whose turns begin
 * at the same moment take them in the order in which they were created.
 */
export function periodic(work: (signal: AbortSignal) => Promise<unknown>, options: PeriodicOptions): Periodic {
  const { every_ms, onError, immediately = false, jitter = 0.1 } = options;
  const stopping = new AbortController();
  const place = nextPlace();
  let cancel = () => {};
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
    cancel();
    if (stopping.signal.aborted) return;
    turn = takeTurns().finally(() => {
      turn = null;
      schedule();
    });
  }

  function schedule(): void {
    if (stopping.signal.aborted) return;
    cancel = wakeLater({ place, start }, { every_ms, jitter });
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
      cancel();
      await turn;
    },
    get last_error() {
      return last_error;
    },
  };
}
