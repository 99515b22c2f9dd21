import { buildCommand, buildRouteMap } from '@stricli/core';
import type { ChangingConnection, CreatingConnection, ListingConnections } from '../actions/connections.ts';
import type { Cli } from '../context.ts';
import type { Shown } from '../output.ts';
import {
  accountConnectorNames,
  connectionNames,
  countFlag,
  folderPaths,
  help,
  type NoFlags,
  one,
  oneConnection,
  proposing,
  shown,
  shownAliases,
  switchFlag,
  textFlag,
  textsFlag,
  viewNames,
  WHOLE,
  withCli,
  yes,
} from './parameters.ts';

const actions = () => import('../actions/connections.ts');

const updateConnection = buildCommand<Shown & ChangingConnection, [string], Cli>({
  loader: async () => withCli((await actions()).updateConnection),
  parameters: {
    flags: {
      ...shown,
      name: textFlag('New name'),
      description: textFlag('Description'),
      schema: textFlag('Destination schema; empty for the default one'),
      prefix: textFlag('Table prefix; empty for none'),
      cron: textFlag('Cron schedule with five fields', 'expression'),
      every: countFlag('Interval in minutes', 'minutes'),
      continuous: switchFlag('Follow the change log of the source'),
      manual: switchFlag('Run only on request'),
      timezone: textFlag('Time zone of the schedule; default UTC', 'zone'),
      stream: textsFlag('Stream to select; repeatable; deselects all others', 'name'),
      folder: { ...textFlag('Folder, such as Finance/Invoices; empty for none', 'path'), ...proposing(folderPaths) },
      tag: textsFlag('Tag; repeatable; replaces all tags', 'tag'),
      set: textsFlag('Any other setting of the API, as text or JSON; repeatable', 'name=value'),
    },
    aliases: shownAliases,
    positional: oneConnection,
  },
  docs: help('Edit a connection', {
    about: 'Settings that are not given stay unchanged.',
    examples: [
      'connections update "Shop to analytics" --cron "30 7 * * 1-5" --timezone Europe/Berlin',
      'connections update "Shop to analytics" --set backfill_days=3 --set consistency=run',
    ],
  }),
});

export const connections = buildRouteMap({
  routes: {
    list: buildCommand<Shown & ListingConnections, [], Cli>({
      loader: async () => withCli((await actions()).listConnections),
      parameters: {
        flags: {
          ...shown,
          view: { ...textFlag('Saved view to filter and sort by', 'name'), ...proposing(viewNames) },
          folder: { ...textFlag('Only this folder and those below it', 'path'), ...proposing(folderPaths) },
        },
        aliases: shownAliases,
      },
      docs: help('List connections', {
        examples: [
          'connections list',
          'connections list --view "Failing sales"',
          'connections list --folder Finance',
          'connections list --jq \'.[] | select(.health == "failing") | .name\'',
        ],
      }),
    }),
    show: buildCommand<Shown, [string], Cli>({
      loader: async () => withCli((await actions()).showConnection),
      parameters: { flags: shown, aliases: shownAliases, positional: oneConnection },
      docs: help('Show a connection and its streams', {
        examples: ['connections show "Shop to analytics"', 'connections show "Shop to analytics" -o yaml'],
      }),
    }),
    create: buildCommand<Shown & CreatingConnection, [], Cli>({
      loader: async () => withCli((await actions()).createConnection),
      parameters: {
        flags: {
          ...shown,
          name: textFlag('Connection name'),
          source: { ...textFlag('Source name or id'), ...proposing(accountConnectorNames('source')) },
          destination: { ...textFlag('Destination name or id'), ...proposing(accountConnectorNames('destination')) },
          schema: textFlag('Destination schema'),
          folder: { ...textFlag('Folder, such as Finance/Invoices', 'path'), ...proposing(folderPaths) },
          cron: textFlag('Cron schedule with five fields', 'expression'),
          every: countFlag('Interval in minutes, instead of --cron', 'minutes'),
          continuous: switchFlag('Follow the change log of the source instead of a schedule'),
          timezone: textFlag('Time zone of the schedule; default UTC', 'zone'),
          stream: textsFlag('Stream to select; repeatable; default all streams', 'name'),
          run: switchFlag('Start the first run immediately'),
        },
        aliases: shownAliases,
      },
      docs: help('Create a connection; `apply` covers every other setting', {
        examples: [
          'connections create --source Shop --destination Analytics --schema shop --cron "0 6 * * *"',
          'connections create --name Orders --source Shop --destination Analytics --stream orders --every 60 --run',
        ],
      }),
    }),
    update: updateConnection,
    pause: buildCommand<Shown & { stop: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).pauseConnection),
      parameters: {
        flags: { ...shown, stop: switchFlag('Also stop the current run') },
        aliases: shownAliases,
        positional: oneConnection,
      },
      docs: help('Pause the schedule', { examples: ['connections pause "Shop to analytics" --stop'] }),
    }),
    resume: buildCommand<Shown, [string], Cli>({
      loader: async () => withCli((await actions()).resumeConnection),
      parameters: { flags: shown, aliases: shownAliases, positional: oneConnection },
      docs: help('Resume the schedule', { examples: ['connections resume "Shop to analytics"'] }),
    }),
    delete: buildCommand<{ yes: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).deleteConnection),
      parameters: { flags: { yes }, positional: one('connection', WHOLE, connectionNames), aliases: { y: 'yes' } },
      docs: help('Delete a connection; loaded data stays in the destination', {
        examples: ['connections delete "Shop to analytics"', 'connections delete "Shop to analytics" --yes'],
      }),
    }),
    'move-folder': buildCommand<Shown, [string, string], Cli>({
      loader: async () => withCli((await actions()).moveFolder),
      parameters: {
        flags: shown,
        aliases: shownAliases,
        positional: {
          kind: 'tuple',
          parameters: [
            one('from', 'Folder, such as Finance', folderPaths).parameters[0],
            one('to', 'Its new name or place; empty removes the folder and keeps its connections').parameters[0],
          ],
        },
      },
      docs: help('Rename or move a folder with all of its connections', {
        about: 'Folders below it move along.',
        examples: [
          'connections move-folder Finance Accounting',
          'connections move-folder Finance/Invoices Archive/Invoices',
          'connections move-folder Drafts ""',
        ],
      }),
    }),
    'refresh-catalog': buildCommand<NoFlags, [string], Cli>({
      loader: async () => withCli((await actions()).refreshConnectionCatalog),
      parameters: { positional: oneConnection },
      docs: help('Refresh the catalog: the streams and fields of the source', {
        examples: ['connections refresh-catalog "Shop to analytics"'],
      }),
    }),
  },
  docs: {
    brief: 'Manage connections: list, show, create, update, pause, resume, delete, move-folder, refresh-catalog',
  },
});
