import { buildCommand } from '@stricli/core';
import type { Verifying } from '../actions/verify.ts';
import type { Cli } from '../context.ts';
import { CONNECTION, json, one, switchFlag, textsFlag, withCli } from './parameters.ts';

export const verify = buildCommand<Verifying, [string], Cli>({
  loader: async () => withCli((await import('../actions/verify.ts')).verify),
  parameters: {
    flags: {
      json,
      repair: switchFlag('Load the rows that differ again'),
      stream: textsFlag('Stream to compare; repeatable; default all', 'name'),
    },
    positional: one('connection', CONNECTION),
  },
  docs: {
    brief: 'Compare the rows of source and destination',
    fullDescription: 'The exit code is the result: 0 equal, 1 different or failed, 7 stopped. Ctrl-C requests a stop.',
  },
});
