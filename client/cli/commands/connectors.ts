import { buildCommand, buildRouteMap } from '@stricli/core';
import type { Changing, Creating } from '../actions/account-connectors.ts';
import type { Cli } from '../context.ts';
import { json, one, oneOrNone, textFlag, textsFlag, switchFlag, yes, withCli } from './parameters.ts';

export const connectors = buildCommand<{ json: boolean; type?: 'source' | 'destination' }, [string?], Cli>({
  loader: async () => withCli((await import('../actions/connectors.ts')).connectors),
  parameters: {
    flags: {
      json,
      type: { kind: 'enum', values: ['source', 'destination'], brief: 'Filter by type', optional: true },
    },
    positional: {
      kind: 'tuple',
      parameters: [
        { placeholder: 'name', brief: 'Connector name; shows its parameters', parse: String, optional: true },
      ],
    },
  },
  docs: { brief: 'List connectors, or show the parameters of one' },
});

const set = textsFlag('Parameter value; repeatable', 'name=value');
const file = textFlag('YAML or JSON file with parameters; - reads standard input', 'path');
const noTest = switchFlag('Save without testing');
type Type = 'source' | 'destination';

const actions = () => import('../actions/account-connectors.ts');
const NAME = 'Name, unique prefix of the name, or id';

/** Sources and destinations share their commands. */
export const accountConnectors = (type: Type) =>
  buildRouteMap({
    routes: {
      list: buildCommand<{ json: boolean }, [], Cli>({
        loader: async () => {
          const { listOf } = await actions();
          return withCli((cli, flags) => listOf(cli, { type, flags }));
        },
        parameters: { flags: { json } },
        docs: { brief: `List ${type}s` },
      }),
      show: read(type, { action: 'showOne', brief: `Show a ${type}: settings, last test, catalog` }),
      create: create(type),
      update: update(type),
      test: read(type, { action: 'testOne', brief: `Test a ${type} now` }),
      delete: buildCommand<{ yes: boolean }, [string], Cli>({
        loader: async () => {
          const { deleteOne } = await actions();
          return withCli((cli, flags, wanted) => deleteOne(cli, { type, flags, wanted }));
        },
        parameters: { flags: { yes }, positional: one('name', NAME), aliases: { y: 'yes' } },
        docs: { brief: `Delete a ${type} that no connection uses` },
      }),
    },
    docs: { brief: `Manage ${type}s: list, show, create, update, test, delete` },
  });

const read = (type: Type, { action, brief }: { action: 'showOne' | 'testOne'; brief: string }) =>
  buildCommand<{ json: boolean }, [string], Cli>({
    loader: async () => {
      const work = (await actions())[action];
      return withCli((cli, flags, wanted) => work(cli, { type, flags, wanted }));
    },
    parameters: { flags: { json }, positional: one('name', NAME) },
    docs: { brief },
  });

const create = (type: Type) =>
  buildCommand<Creating, [string?], Cli>({
    loader: async () => {
      const { createOne } = await actions();
      return withCli((cli, flags, wanted) => createOne(cli, { type, flags, wanted }));
    },
    parameters: {
      flags: { json, name: textFlag('Name'), set, file, noTest },
      positional: oneOrNone('connector', 'Connector name, as listed by `connectors`'),
    },
    docs: {
      brief: `Create a ${type}`,
      fullDescription: 'Prompts for missing parameters in a terminal. Secrets are not echoed.',
    },
  });

const update = (type: Type) =>
  buildCommand<Changing, [string], Cli>({
    loader: async () => {
      const { updateOne } = await actions();
      return withCli((cli, flags, wanted) => updateOne(cli, { type, flags, wanted }));
    },
    parameters: { flags: { json, name: textFlag('New name'), set, file, noTest }, positional: one('name', NAME) },
    docs: { brief: `Edit a ${type}` },
  });
