import { buildCommand, buildRouteMap } from '@stricli/core';
import type { SavingView, ViewedList } from '../actions/views.ts';
import type { Cli } from '../context.ts';
import type { Shown } from '../output.ts';
import { help, one, shown, shownAliases, switchFlag, textFlag, viewNames, WHOLE, withCli, yes } from './parameters.ts';

const actions = () => import('../actions/views.ts');

const LISTS = ['connections', 'cases', 'events', 'audit'] as const satisfies readonly ViewedList[];
const pageFlag = (brief: string) => ({ kind: 'enum', values: LISTS, brief, optional: true }) as const;

export const views = buildRouteMap({
  routes: {
    list: buildCommand<Shown & { page?: ViewedList }, [], Cli>({
      loader: async () => withCli((await actions()).listViews),
      parameters: { flags: { ...shown, page: pageFlag('Views of one list only') }, aliases: shownAliases },
      docs: help('List saved views: your own and the shared ones', {
        examples: ['views list', 'views list --page connections -o wide'],
      }),
    }),
    save: buildCommand<Shown & SavingView, [string], Cli>({
      loader: async () => withCli((await actions()).saveView),
      parameters: {
        flags: {
          ...shown,
          query: textFlag('Filters, as in the address of the list in the console', 'filters'),
          page: pageFlag('The list; default connections'),
          share: switchFlag('Share the view with everyone in the account'),
          overwrite: switchFlag('Replace the filters of the view with this name'),
        },
        aliases: shownAliases,
        positional: one('name', 'Name of the view', viewNames),
      },
      docs: help('Save filters of a list under a name', {
        examples: [
          'views save "Failing sales" --query "state=failing&tag=sales"',
          'views save "Open cases" --page cases --query status=open --share',
        ],
      }),
    }),
    delete: buildCommand<{ yes: boolean; page?: ViewedList }, [string], Cli>({
      loader: async () => withCli((await actions()).deleteView),
      parameters: {
        flags: { yes, page: pageFlag('A view of this list only') },
        aliases: { y: 'yes' },
        positional: one('view', WHOLE, viewNames),
      },
      docs: help('Delete a saved view', { examples: ['views delete "Failing sales"'] }),
    }),
  },
  docs: { brief: 'Manage saved views of lists: list, save, delete' },
});
