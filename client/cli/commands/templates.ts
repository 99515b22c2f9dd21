import { buildCommand, buildRouteMap } from '@stricli/core';
import type { Cli } from '../context.ts';
import type { Shown } from '../output.ts';
import { help, one, shown, shownAliases, withCli } from './parameters.ts';

const names = async (cli: Cli) => (await (await cli.api()).templates.list.query()).map(({ name }) => name);

export const templates = buildRouteMap<string, Cli>({
  routes: {
    list: buildCommand<Shown, [], Cli>({
      loader: async () => withCli((await import('../actions/templates.ts')).listTemplates),
      parameters: { flags: shown, aliases: shownAliases },
      docs: help('List templates of common pipelines', { examples: ['templates list', 'templates list -o wide'] }),
    }),
    show: buildCommand<Shown, [string], Cli>({
      loader: async () => withCli((await import('../actions/templates.ts')).showTemplate),
      parameters: {
        flags: shown,
        aliases: shownAliases,
        positional: one('name', 'Name or unique prefix of the name', names),
      },
      docs: help('Print a template as a file for `apply`', {
        about:
          'Edit the file, set the variables that it names, and apply it: `data-pipelines apply -f pipelines.yaml`.',
        examples: ['templates show postgres-to-parquet > pipelines.yaml'],
      }),
    }),
  },
  docs: { brief: 'Start from templates of common pipelines: list, show' },
});
