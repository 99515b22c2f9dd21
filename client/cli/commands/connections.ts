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
      docs: { brief: 'List connections' },
    }),
    show: buildCommand<{ json: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).showConnection),
      parameters: { flags: { json }, positional: one('connection', CONNECTION) },
      docs: { brief: 'Show a connection and its streams' },
    }),
    create: buildCommand<CreatingConnection, [], Cli>({
      loader: async () => withCli((await actions()).createConnection),
      parameters: {
        flags: {
          json,
          name: textFlag('Connection name'),
          source: textFlag('Source name or id'),
          destination: textFlag('Destination name or id'),
          schema: textFlag('Destination schema'),
          cron: textFlag('Cron schedule with five fields', 'expression'),
          every: {
            kind: 'parsed',
            parse: Number,
            brief: 'Interval in minutes, instead of --cron',
            placeholder: 'minutes',
            optional: true,
          },
          timezone: textFlag('Time zone of the schedule; default UTC', 'zone'),
          stream: textsFlag('Stream to select; repeatable; default all streams', 'name'),
          run: switchFlag('Start the first run immediately'),
        },
      },
      docs: { brief: 'Create a connection; `apply` covers every other setting' },
    }),
    pause: buildCommand<{ json: boolean; stop: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).pauseConnection),
      parameters: {
        flags: { json, stop: switchFlag('Also stop the current run') },
        positional: one('connection', CONNECTION),
      },
      docs: { brief: 'Pause the schedule' },
    }),
    resume: buildCommand<{ json: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).resumeConnection),
      parameters: { flags: { json }, positional: one('connection', CONNECTION) },
      docs: { brief: 'Resume the schedule' },
    }),
    delete: buildCommand<{ yes: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).deleteConnection),
      parameters: { flags: { yes }, positional: one('connection', CONNECTION), aliases: { y: 'yes' } },
      docs: { brief: 'Delete a connection; loaded data stays in the destination' },
    }),
    'refresh-catalog': buildCommand<NoFlags, [string], Cli>({
      loader: async () => withCli((await actions()).refreshConnectionCatalog),
      parameters: { positional: one('connection', CONNECTION) },
      docs: { brief: 'Refresh the catalog: the streams and fields of the source' },
    }),
  },
  docs: { brief: 'Manage connections: list, show, create, pause, resume, delete, refresh-catalog' },
});
