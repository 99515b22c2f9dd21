import type { Cli } from '../context.ts';
import { CommandError } from '../exit.ts';
import { checkedContext, contexts, DEFAULT_CONTEXT, forgetLogin, useContext } from '../settings.ts';
import { showList } from '../table.ts';

export function listContexts(cli: Cli, flags: { json: boolean }): void {
  showList(cli, contexts(), {
    json: flags.json,
    empty: 'Not signed in to any service',
    columns: {
      name: ({ name }) => name,
      url: ({ url }) => url,
      current: ({ is_current }) => (is_current ? 'yes' : ''),
    },
  });
}

export function useNamed(cli: Cli, _flags: object, wanted: string): void {
  const { name, url } = known(wanted);
  useContext(name);
  cli.print(`Commands now use ${name}, ${url}`);
}

export function deleteContext(cli: Cli, _flags: object, wanted: string): void {
  const { name, url, is_current } = known(wanted);
  forgetLogin(name);
  if (is_current) useContext(DEFAULT_CONTEXT);
  cli.print(`Removed the stored key for ${url}. The key stays valid until \`keys revoke\``);
}

function known(wanted: string) {
  const found = contexts().find(({ name }) => name === checkedContext(wanted));
  if (found) return found;
  throw new CommandError('not_found', `No context is named "${wanted}". Create it with \`login --context ${wanted}\``);
}
