import { parseArgs } from 'node:util';
import { type Config, ConfigError } from '../../platform/config.ts';
import type { OperatorCommand } from './operator-commands.ts';
import {
  createAccount,
  deleteAccount,
  exportAccountTo,
  limitAccount,
  listAccounts,
  resumeAccount,
  suspendAccount,
} from './accounts/actions.ts';

const OPTIONS = {
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

/** The arguments of a command about accounts. */
export interface AccountArguments {
  config: Config;
  /** What stands behind the name of the command. */
  words: string[];
  flags: { [Flag in keyof typeof OPTIONS]?: (typeof OPTIONS)[Flag]['type'] extends 'string' ? string : boolean };
  say(line: string): void;
}

const ACTIONS: Record<string, (given: AccountArguments) => Promise<number>> = {
  list: listAccounts,
  create: createAccount,
  limit: limitAccount,
  suspend: suspendAccount,
  resume: resumeAccount,
  export: exportAccountTo,
  delete: deleteAccount,
};

/** `account <action> …`: the accounts of the installation. */
export const accountCommand: OperatorCommand = async (config, args, say) => {
  const { values: flags, positionals } = parsed(args);
  const [name = '', ...words] = positionals;
  const action = ACTIONS[name];
  if (!action) throw new ConfigError(`Unknown action "${name}". Use account ${Object.keys(ACTIONS).join(', ')}`);
  return action({ config, words, flags, say });
};

function parsed(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new ConfigError((error as Error).message);
  }
}
