import { parseArgs } from 'node:util';
import { ConfigError } from '../../platform/config.ts';
import {
  createAccount,
  deleteAccount,
  exportAccountTo,
  limitAccount,
  listAccounts,
  resumeAccount,
  suspendAccount,
} from './accounts/actions.ts';
import { type AccountArguments, OPTIONS } from './accounts/arguments.ts';
import type { OperatorCommand } from './operator-command.ts';

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
