import type { Config } from '../../platform/config.ts';

/** Does the work of a command. Returns the exit code. */
export type OperatorCommand = (config: Config, args: string[], say: (line: string) => void) => Promise<number>;
