import { buildCommand } from '@stricli/core';
import type { Verifying } from '../actions/verify.ts';
import type { Cli } from '../context.ts';
import type { Shown } from '../output.ts';
import { help, oneConnection, shown, shownAliases, switchFlag, textsFlag, withCli } from './parameters.ts';

export const verify = buildCommand<Shown & Verifying, [string], Cli>({
  loader: async () => withCli((await import('../actions/verify.ts')).verify),
  parameters: {
    flags: {
      ...shown,
      repair: switchFlag('Load the rows that differ again'),
      stream: textsFlag('Stream to compare; repeatable; default all', 'name'),
    },
    aliases: shownAliases,
    positional: oneConnection,
  },
  docs: help('Compare the rows of source and destination', {
    about: 'The exit code is the result: 0 equal, 1 different or failed, 7 stopped. Ctrl-C requests a stop.',
    examples: ['verify "Shop to analytics"', 'verify "Shop to analytics" --stream orders --repair'],
  }),
});
