import type { Logger } from 'pino';

type Step = () => Promise<unknown>;

/** What a process must put down before it ends, undone in reverse order of `onEnd`. */
export interface Shutdown {
  onEnd(step: Step): void;
  /** True from the first signal on: errors of what is cut off then are none. */
  isEnding(): boolean;
  /** Ends the process. Safe to call more than once: the first call counts. */
  end(exitCode: number): Promise<never>;
}

/** After this long a step that hangs is left alone: the database recovers from that, a service that never ends does not. */
const LIMIT_MS = 60_000;

/** Ctrl-C under a package runner comes several times within milliseconds: from the terminal, and passed on by each runner. */
const SAME_SIGNAL_MS = 1_000;

/** SIGINT and SIGTERM end the process cleanly with exit code 0; another one, a second later or more, at once with 130. */
export function handleSignals(log: Pick<Logger, 'error'>): Shutdown {
  const steps: Step[] = [];
  let ending: Promise<never> | null = null;
  let firstSignal = 0;
  const undo = async () => {
    for (const step of steps.toReversed()) {
      await step().catch((error: unknown) => log.error({ err: error }, 'shutdown'));
    }
  };
  const finish = async (exitCode: number): Promise<never> => {
    await Promise.race([undo(), Bun.sleep(LIMIT_MS)]);
    process.exit(exitCode);
  };
  const end = (exitCode: number) => (ending ??= finish(exitCode));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (!firstSignal) firstSignal = performance.now();
      else if (performance.now() - firstSignal > SAME_SIGNAL_MS) process.exit(130);
      void end(0);
    });
  }
  return { onEnd: (step) => steps.push(step), isEnding: () => ending !== null, end };
}
