import { buildCommand } from '@stricli/core';
import type { Describing } from '../actions/custom-connectors.ts';
import type { Cli } from '../context.ts';
import type { Shown } from '../output.ts';
import { type NoFlags, help, one, shown, shownAliases, switchFlag, textFlag, withCli, yes } from './parameters.ts';

const actions = () => import('../actions/custom-connectors.ts');
const customNames = async (cli: Cli) =>
  (await (await cli.api()).custom_connectors.list.query()).map(({ name }) => name);

const describing = {
  ...shown,
  components: textFlag('Address or file of the components.py', 'place'),
  displayName: textFlag('Name in the catalog'),
  description: textFlag('A line about the connector'),
  icon: textFlag('PNG, JPEG, WebP or SVG image of at most 48 kB', 'path'),
  documentation: textFlag('Address of its documentation', 'address'),
};
const place = {
  placeholder: 'manifest',
  brief: 'Address or file of the manifest; - reads standard input',
  parse: String,
};

export const addConnector = buildCommand<Shown & Describing & { name: string }, [string], Cli>({
  loader: async () => withCli((await actions()).addConnector),
  parameters: {
    flags: {
      ...describing,
      name: {
        kind: 'parsed',
        parse: String,
        brief: 'Lower-case letters, digits and underscores; sources name it custom.NAME',
        placeholder: 'name',
      },
    },
    aliases: shownAliases,
    positional: { kind: 'tuple', parameters: [place] },
  },
  docs: help('Add a connector from an Airbyte manifest to the catalog of the account', {
    about: 'The service fetches addresses itself, by https and without credentials.',
    examples: [
      'connectors add https://example.com/source-shop/manifest.yaml --name shop',
      'connectors add manifest.yaml --name shop --components components.py --icon shop.svg',
    ],
  }),
});

type Updating = Shown & Describing & { dryRun: boolean; acceptBreaking: boolean; yes: boolean };

export const updateConnector = buildCommand<Updating, [string, string?], Cli>({
  loader: async () => withCli((await actions()).updateConnector),
  parameters: {
    flags: {
      ...describing,
      dryRun: switchFlag('Show the changes alone'),
      acceptBreaking: switchFlag('Update although sources would break'),
      yes,
    },
    aliases: shownAliases,
    positional: {
      kind: 'tuple',
      parameters: [
        one('connector', 'Connector name, as listed by `connectors`', customNames).parameters[0],
        { ...place, optional: true },
      ],
    },
  },
  docs: help('Update a connector of the account and its sources to a newer manifest', {
    about: 'Without a manifest, from the address that the connector was added from. Shows the changes first.',
    examples: ['connectors update custom.shop --dry-run', 'connectors update custom.shop manifest.yaml --yes'],
  }),
});

export const removeConnector = buildCommand<NoFlags & { yes: boolean }, [string], Cli>({
  loader: async () => withCli((await actions()).removeConnector),
  parameters: { flags: { yes }, positional: one('connector', 'Whole name', customNames) },
  docs: help('Remove a connector of the account that no source uses', { examples: ['connectors delete custom.shop'] }),
});
