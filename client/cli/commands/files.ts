import { buildCommand } from '@stricli/core';
import type { Applying } from '../apply/apply.ts';
import type { Cli } from '../context.ts';
import { switchFlag, textFlag, yes, withCli } from './parameters.ts';

export const apply = buildCommand<Applying, [], Cli>({
  loader: async () => withCli((await import('../apply/apply.ts')).apply),
  parameters: {
    flags: {
      file: { kind: 'parsed', parse: String, brief: 'The file; - is standard input', placeholder: 'path' },
      yes,
      json: switchFlag('The steps and what became of each, as JSON; asks nothing'),
      dryRun: switchFlag('Show what would change; exit code 1 when something would'),
      prune: switchFlag('Delete what the file does not name'),
      rotateSecrets: switchFlag('Send every secret again, those that cannot be compared as well'),
    },
    aliases: { f: 'file', y: 'yes' },
  },
  docs: {
    brief: 'Make sources, destinations, connections and triggers be as a file says',
    fullDescription:
      'Shows the difference, asks, and changes. What the file says nothing about stays as it is.\n${NAME} in a text is the environment variable; $${ is a plain ${.',
  },
});

export const exportFile = buildCommand<{ output?: string }, [], Cli>({
  loader: async () => withCli((await import('../apply/export.ts')).exportPipelines),
  parameters: { flags: { output: textFlag('Where to; default standard output', 'path') }, aliases: { o: 'output' } },
  docs: { brief: 'A file for `apply` of what is there; secrets become ${NAMES}' },
});
