import { buildCommand, buildRouteMap } from '@stricli/core';
import type { CreatingConnection } from '../actions/connections.ts';
import type { Cli } from '../context.ts';
import type { NoFlags } from './parameters.ts';
import { CONNECTION, json, one, switchFlag, textFlag, textsFlag, yes, withCli } from './parameters.ts';

const actions = () => import('../actions/connections.ts');

export const connections = buildRouteMap({
  routes: {
    list: buildCommand<{ json: boolean }, [], Cli>({
      loader: async () => withCli((await actions()).listConnections),
      parameters: { flags: { json } },
      docs: { brief: 'All connections' },
    }),
    show: buildCommand<{ json: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).showConnection),
      parameters: { flags: { json }, positional: one('connection', CONNECTION) },
      docs: { brief: 'One connection, with its streams' },
    }),
    create: buildCommand<CreatingConnection, [], Cli>({
      loader: async () => withCli((await actions()).createConnection),
      parameters: {
        flags: {
          json,
          name: textFlag('Its name'),
          source: textFlag('Name or id of the source'),
          destination: textFlag('Name or id of the destination'),
          schema: textFlag('Schema of the tables in the destination'),
          cron: textFlag('When it runs: five fields of cron', 'expression'),
          every: {
            kind: 'parsed',
            parse: Number,
            brief: 'Or: every so many minutes',
            placeholder: 'minutes',
            optional: true,
          },
          timezone: textFlag('Time zone of the schedule', 'zone'),
          stream: textsFlag('Only these streams; may come more than once', 'name'),
          run: switchFlag('Start the first run'),
        },
      },
      docs: { brief: 'Make a connection; what else there is to say goes into a file, see `apply`' },
    }),
    pause: buildCommand<{ json: boolean; stop: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).pauseConnection),
      parameters: {
        flags: { json, stop: switchFlag('Stop the run that is going on, too') },
        positional: one('connection', CONNECTION),
      },
      docs: { brief: 'Start no more runs by schedule' },
    }),
    resume: buildCommand<{ json: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).resumeConnection),
      parameters: { flags: { json }, positional: one('connection', CONNECTION) },
      docs: { brief: 'Go on by schedule' },
    }),
    delete: buildCommand<{ yes: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).deleteConnection),
      parameters: { flags: { yes }, positional: one('connection', CONNECTION), aliases: { y: 'yes' } },
      docs: { brief: 'Delete a connection; what it has loaded stays' },
    }),
    'refresh-catalog': buildCommand<NoFlags, [string], Cli>({
      loader: async () => withCli((await actions()).refreshConnectionCatalog),
      parameters: { positional: one('connection', CONNECTION) },
      docs: { brief: 'Look what streams and fields the source has now' },
    }),
  },
  docs: { brief: 'Connections: list, show, create, pause, resume, delete, refresh-catalog' },
});
