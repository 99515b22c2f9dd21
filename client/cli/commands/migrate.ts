import { buildCommand } from '@stricli/core';
import type { Cli } from '../context.ts';
import type { Shown } from '../output.ts';
import {
  countFlag,
  help,
  oneConnection,
  shown,
  shownAliases,
  switchFlag,
  textFlag,
  withCli,
  yes,
} from './parameters.ts';
import type { Migrating } from '../actions/migrate/migration.ts';

export const migrate = buildCommand<Shown & Migrating, [string], Cli>({
  loader: async () => withCli((await import('../actions/migrate/migrate.ts')).migrate),
  parameters: {
    flags: {
      ...shown,
      yes,
      maxLag: countFlag('Seconds of lag at which the cut-over begins; default 10', 'seconds'),
      wait: countFlag('Seconds to wait until the source is no longer written to; default 600', 'seconds'),
      stopWrites: textFlag('Shell command that stops the application, run after the confirmation', 'command'),
      verifyOnce: switchFlag('Verify before the pause only, so that the pause does not grow with the tables'),
    },
    aliases: { ...shownAliases, y: 'yes' },
    positional: oneConnection,
  },
  docs: help('Move an application to another database: copy, follow, verify, cut over', {
    about:
      'Follows the change log of the source until the application can stop, and prints how long it had to. ' +
      'Until the end, the source stays as it is. The command can be repeated.',
    examples: [
      'migrate "Shop to new server"',
      'migrate "Shop to new server" --yes --stop-writes "systemctl stop shop"',
    ],
  }),
});
