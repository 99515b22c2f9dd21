import type { Logger } from 'pino';

type Step = () => Promise<unknown>;

/** The steps to end a process cleanly, run in the reverse order of `onEnd`. */
export interface Shutdown {
  onEnd(step: Step): void;
  /** Once this resolves, after the end has begun, the process ends without the steps that are left. */
  giveUpWhen(lost: Step): void;
  /** True from the first signal on. Errors of interrupted work are then expected. */
  isEnding(): boolean;
  /** Ends the process. Only the first call has an effect. */
  end(exitCode: number): Promise<never>;
}

/** Limit for all steps. The database recovers from an unclean end, but a hanging step would block the end forever. */
const LIMIT_MS = 60_000;

/** A control database that does not answer for so long cannot record the end of anything. Recovery does it later. */
export const SILENT_AT_END = { within_ms: 4_000 };

/** Under a package runner one Ctrl-C arrives several times: from the terminal, and forwarded by each runner. */
const SAME_SIGNAL_MS = 1_000;

/** SIGINT and SIGTERM end the process cleanly with exit code 0. A second signal after at least 1 s exits at once with 130. */
export function handleSignals(log: Pick<Logger, 'error'>): Shutdown {
  const steps: Step[] = [];
  const losses: Step[] = [];
  let ending: Promise<never> | null = null;
  let firstSignal = 0;
  const undo = async () => {
    for (const step of steps.toReversed()) {
      await step().catch((error: unknown) => log.error({ err: error }, 'shutdown'));
    }
  };
  const finish = async (exitCode: number): Promise<never> => {
    await Promise.race([undo(), Bun.sleep(LIMIT_MS), ...losses.map((lost) => lost())]);
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
  return {
    onEnd: (step) => steps.push(step),
    giveUpWhen: (lost) => losses.push(lost),
    isEnding: () => ending !== null,
    end,
  };
}
