import { buildCommand, buildRouteMap } from '@stricli/core';
import type { Changing, Creating, Testing } from '../actions/account-connectors.ts';
import type { Previewing } from '../actions/preview-page.ts';
import type { Cli } from '../context.ts';
import { addConnector, removeConnector, updateConnector } from './custom-connectors.ts';
import type { Shown } from '../output.ts';
import {
  accountConnectorNames,
  connectorNames,
  countFlag,
  help,
  one,
  oneOrNone,
  shown,
  shownAliases,
  switchFlag,
  textFlag,
  textsFlag,
  WHOLE,
  withCli,
  yes,
} from './parameters.ts';

/** What follows `connectors`, where the verb can be left out. */
const namesAndVerbs = async (cli: Cli) => [
  'add',
  'update',
  'delete',
  ...(await Promise.resolve(connectorNames(cli)).catch(() => [])),
];

const listConnectors = buildCommand<Shown & { type?: 'source' | 'destination' }, [string?], Cli>({
  loader: async () => withCli((await import('../actions/connectors.ts')).connectors),
  parameters: {
    flags: {
      ...shown,
      type: { kind: 'enum', values: ['source', 'destination'], brief: 'Filter by type', optional: true },
    },
    aliases: shownAliases,
    positional: oneOrNone('name', 'Connector name; shows its parameters', namesAndVerbs),
  },
  docs: help('List connectors, or show the parameters of one', {
    about: '`connectors` alone lists them, too.',
    examples: ['connectors list --type source', 'connectors list postgres'],
  }),
});

/** `connectors` and `connectors postgres` need no verb. */
export const connectors = buildRouteMap<string, Cli>({
  routes: { list: listConnectors, add: addConnector, update: updateConnector, delete: removeConnector },
  defaultCommand: 'list',
  docs: { brief: 'List connectors, and add those of the account' },
});

const set = textsFlag('Parameter value; repeatable', 'name=value');
const file = textFlag('YAML or JSON file with parameters; - reads standard input', 'path');
const noTest = switchFlag('Save without testing');
const connect = switchFlag('Sign in at the provider in a browser instead of entering its tokens');
type Type = 'source' | 'destination';

const actions = () => import('../actions/account-connectors.ts');
const NAME = 'Name, unique prefix of the name, or id';

/** Sources and destinations share their commands. */
export const accountConnectors = (type: Type) =>
  buildRouteMap<string, Cli>({
    routes: {
      list: buildCommand<Shown, [], Cli>({
        loader: async () => {
          const { listOf } = await actions();
          return withCli((cli, flags) => listOf(cli, { type, flags }));
        },
        parameters: { flags: shown, aliases: shownAliases },
        docs: help(`List ${type}s`, { examples: [`${type}s list`, `${type}s list -o wide`] }),
      }),
      show: read(type, { action: 'showOne', verb: 'show', brief: `Show a ${type}: settings, last test, catalog` }),
      create: create(type),
      update: update(type),
      test:
        type === 'destination'
          ? testDestination()
          : read(type, { action: 'testOne', verb: 'test', brief: `Test a ${type} now` }),
      delete: buildCommand<{ yes: boolean }, [string], Cli>({
        loader: async () => {
          const { deleteOne } = await actions();
          return withCli((cli, flags, wanted) => deleteOne(cli, { type, flags, wanted }));
        },
        parameters: {
          flags: { yes },
          positional: one('name', WHOLE, accountConnectorNames(type)),
          aliases: { y: 'yes' },
        },
        docs: help(`Delete a ${type} that no connection uses`, { examples: [`${type}s delete Shop`] }),
      }),
      ...(type === 'source' ? { draft: draft(), preview: preview(), webhook: webhook() } : {}),
    },
    docs: {
      brief: `Manage ${type}s: list, show, create, update, test, delete${type === 'source' ? ', draft, preview, webhook' : ''}`,
    },
  });

const webhook = () =>
  buildCommand<Shown & { rotate: boolean; overlap?: number }, [string], Cli>({
    loader: async () => {
      const { webhookOf } = await import('../actions/webhooks.ts');
      return withCli((cli, flags, wanted) => webhookOf(cli, { flags, wanted }));
    },
    parameters: {
      flags: {
        ...shown,
        rotate: switchFlag('Create a new address'),
        overlap: countFlag('With --rotate: hours for which the present address works too'),
      },
      aliases: shownAliases,
      positional: one('name', NAME, accountConnectorNames('source')),
    },
    docs: help('Show the address of a source that receives events, and what it has received', {
      examples: ['sources webhook Payments', 'sources webhook Payments --rotate --overlap 24'],
    }),
  });

const preview = () =>
  buildCommand<Shown & Previewing, [string?], Cli>({
    loader: async () => {
      const { previewPage } = await import('../actions/preview-page.ts');
      return withCli((cli, flags, wanted) => previewPage(cli, { flags, wanted }));
    },
    parameters: {
      flags: {
        ...shown,
        stream: textFlag('Stream name; by default the first one'),
        connector: textFlag('Connector of a source that is not stored; by default http_api', 'name'),
        set,
        file,
      },
      aliases: shownAliases,
      positional: oneOrNone(
        'name',
        `${NAME}; without it the parameters given are all`,
        accountConnectorNames('source'),
      ),
    },
    docs: help('Read the first page of a stream while its definition is written', {
      about:
        'Shows the requests, the first records, the inferred fields and the request of the next page. Nothing is stored. -o json also has headers and bodies, with secrets hidden.',
      examples: [
        'sources preview --file shop-api.yaml --stream orders',
        "sources preview 'Shop API' --file shop-api.yaml -o json",
      ],
    }),
  });

const draft = () =>
  buildCommand<Shown & { openapi: string }, [], Cli>({
    loader: async () => {
      const { draftDefinition } = await import('../actions/draft-definition.ts');
      return withCli((cli, flags) => draftDefinition(cli, flags));
    },
    parameters: {
      flags: {
        ...shown,
        openapi: {
          kind: 'parsed',
          parse: String,
          brief: 'OpenAPI 3 or Swagger 2 document in YAML or JSON; - reads standard input',
          placeholder: 'path',
        },
      },
      aliases: shownAliases,
    },
    docs: help('Draft the definition of an http_api source from an OpenAPI document', {
      about:
        'Prints the definition. Comments in it name what was guessed; try each stream with `sources preview` before the source is created. Nothing is stored.',
      examples: [
        'sources draft --openapi openapi.json > shop-api.yaml',
        'sources draft --openapi openapi.yaml -o json',
      ],
    }),
  });

const read = (type: Type, { action, verb, brief }: { action: 'showOne' | 'testOne'; verb: string; brief: string }) =>
  buildCommand<Shown, [string], Cli>({
    loader: async () => {
      const work = (await actions())[action];
      return withCli((cli, flags, wanted) => work(cli, { type, flags, wanted }));
    },
    parameters: {
      flags: shown,
      aliases: shownAliases,
      positional: one('name', NAME, accountConnectorNames(type)),
    },
    docs: help(brief, { examples: [`${type}s ${verb} Shop`, `${type}s ${verb} Shop --jq .status`] }),
  });

const testDestination = () =>
  buildCommand<Shown & Testing, [string], Cli>({
    loader: async () => {
      const { testOne } = await actions();
      return withCli((cli, flags, wanted) => testOne(cli, { type: 'destination', flags, wanted }));
    },
    parameters: {
      flags: {
        ...shown,
        schema: textFlag('Test this schema, as a connection would use it, instead of the default one'),
      },
      aliases: shownAliases,
      positional: one('name', NAME, accountConnectorNames('destination')),
    },
    docs: help('Test a destination now', {
      about: 'A schema is not stored, and its result leaves the status of the destination as it is.',
      examples: ['destinations test Analytics', 'destinations test Analytics --schema shop'],
    }),
  });

const create = (type: Type) =>
  buildCommand<Shown & Creating, [string?], Cli>({
    loader: async () => {
      const { createOne } = await actions();
      return withCli((cli, flags, wanted) => createOne(cli, { type, flags, wanted }));
    },
    parameters: {
      flags: { ...shown, name: textFlag('Name'), set, file, noTest, connect },
      aliases: shownAliases,
      positional: oneOrNone('connector', 'Connector name, as listed by `connectors`', connectorNames),
    },
    docs: help(`Create a ${type}`, {
      about: 'Prompts for missing parameters in a terminal. Secrets are not echoed.',
      examples: [
        `${type}s create`,
        `${type}s create postgres --name Shop --set host=db.example.com --set database=shop --file login.yaml`,
      ],
    }),
  });

const update = (type: Type) =>
  buildCommand<Shown & Changing, [string], Cli>({
    loader: async () => {
      const { updateOne } = await actions();
      return withCli((cli, flags, wanted) => updateOne(cli, { type, flags, wanted }));
    },
    parameters: {
      flags: { ...shown, name: textFlag('New name'), set, file, noTest, connect },
      aliases: shownAliases,
      positional: one('name', NAME, accountConnectorNames(type)),
    },
    docs: help(`Edit a ${type}`, { examples: [`${type}s update Shop --set password="$SHOP_PASSWORD"`] }),
  });
