import { buildCommand, buildRouteMap } from '@stricli/core';
import type { Changing, Creating } from '../actions/account-connectors.ts';
import type { Cli } from '../context.ts';
import { json, one, oneOrNone, textFlag, textsFlag, switchFlag, yes, withCli } from './parameters.ts';

export const connectors = buildCommand<{ json: boolean; type?: 'source' | 'destination' }, [string?], Cli>({
  loader: async () => withCli((await import('../actions/connectors.ts')).connectors),
  parameters: {
    flags: {
      json,
      type: { kind: 'enum', values: ['source', 'destination'], brief: 'Only these', optional: true },
    },
    positional: {
      kind: 'tuple',
      parameters: [{ placeholder: 'name', brief: 'One of them, with its parameters', parse: String, optional: true }],
    },
  },
  docs: { brief: 'What can be connected' },
});

const set = textsFlag('A parameter; may come more than once', 'name=value');
const file = textFlag('Parameters from a YAML or JSON file; - is standard input', 'path');
const noTest = switchFlag('Store it without trying it');
type Type = 'source' | 'destination';

const actions = () => import('../actions/account-connectors.ts');
const NAME = 'Its name, the beginning of it, or its id';

/** The same commands for sources and for destinations. */
export const accountConnectors = (type: Type) =>
  buildRouteMap({
    routes: {
      list: buildCommand<{ json: boolean }, [], Cli>({
        loader: async () => {
          const { listOf } = await actions();
          return withCli((cli, flags) => listOf(cli, { type, flags }));
        },
        parameters: { flags: { json } },
        docs: { brief: `All ${type}s` },
      }),
      show: looking(type, { action: 'showOne', brief: `One ${type}: settings, test, catalog` }),
      create: create(type),
      update: update(type),
      test: looking(type, { action: 'testOne', brief: 'Try it now' }),
      delete: buildCommand<{ yes: boolean }, [string], Cli>({
        loader: async () => {
          const { deleteOne } = await actions();
          return withCli((cli, flags, wanted) => deleteOne(cli, { type, flags, wanted }));
        },
        parameters: { flags: { yes }, positional: one('name', NAME), aliases: { y: 'yes' } },
        docs: { brief: `Delete a ${type} that no connection uses` },
      }),
    },
    docs: { brief: `${type === 'source' ? 'Sources' : 'Destinations'}: list, show, create, update, test, delete` },
  });

const looking = (type: Type, { action, brief }: { action: 'showOne' | 'testOne'; brief: string }) =>
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
      flags: { json, name: textFlag('Its name'), set, file, noTest },
      positional: oneOrNone('connector', 'As `connectors` lists them'),
    },
    docs: {
      brief: `Make a ${type}`,
      fullDescription: 'Asks for what is missing when it runs in a terminal. Secrets are not echoed.',
    },
  });

const update = (type: Type) =>
  buildCommand<Changing, [string], Cli>({
    loader: async () => {
      const { updateOne } = await actions();
      return withCli((cli, flags, wanted) => updateOne(cli, { type, flags, wanted }));
    },
    parameters: { flags: { json, name: textFlag('A new name'), set, file, noTest }, positional: one('name', NAME) },
    docs: { brief: `Change a ${type}` },
  });
