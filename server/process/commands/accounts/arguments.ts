import type { Config } from '../../../platform/config.ts';

/** The arguments of a command about accounts. */
export interface AccountArguments {
  config: Config;
  /** What stands behind the name of the command. */
  words: string[];
  flags: { [Flag in keyof typeof OPTIONS]?: (typeof OPTIONS)[Flag]['type'] extends 'string' ? string : boolean };
  say(line: string): void;
}

export const OPTIONS = {
  email: { type: 'string' },
  rows: { type: 'string' },
  runs: { type: 'string' },
  'disk-mb': { type: 'string' },
  'log-days': { type: 'string' },
  reason: { type: 'string' },
  confirm: { type: 'string' },
  audit: { type: 'string' },
  'leave-logs': { type: 'boolean' },
  json: { type: 'boolean' },
} as const;
