import { buildCommand, buildRouteMap } from '@stricli/core';
import type { KeyCreation } from '../actions/users-and-keys.ts';
import type { Cli } from '../context.ts';
import type { Shown } from '../output.ts';
import {
  countFlag,
  help,
  json,
  keyPrefixes,
  one,
  shown,
  shownAliases,
  switchFlag,
  textFlag,
  textsFlag,
  userEmails,
  withCli,
  yes,
} from './parameters.ts';

const actions = () => import('../actions/users-and-keys.ts');

export const users = buildRouteMap({
  routes: {
    list: buildCommand<Shown, [], Cli>({
      loader: async () => withCli((await actions()).listUsers),
      parameters: { flags: shown, aliases: shownAliases },
      docs: help('List users', { examples: ['users list', 'users list -o csv'] }),
    }),
    invite: buildCommand<{ json: boolean; name?: string; role?: readonly string[] }, [string], Cli>({
      loader: async () => withCli((await actions()).inviteUser),
      parameters: {
        flags: { json, name: textFlag('Full name'), role: textsFlag('Role to assign; repeatable', 'name') },
        positional: one('email', 'Email address of the new user'),
      },
      docs: help('Invite a user; the invitation link is shown once', {
        examples: ['users invite ada@example.com --name "Ada Lovelace" --role Viewer'],
      }),
    }),
    disable: buildCommand<Shown & { yes: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).disableUser),
      parameters: {
        flags: { ...shown, yes },
        aliases: { ...shownAliases, y: 'yes' },
        positional: one('user', 'Email address or id', userEmails),
      },
      docs: help('Disable a user', { examples: ['users disable ada@example.com'] }),
    }),
  },
  docs: { brief: 'Manage users: list, invite, disable' },
});

const serviceAccount = textFlag('Name or id of a service account; default your own user', 'name');

export const keys = buildRouteMap({
  routes: {
    list: buildCommand<Shown & { serviceAccount?: string }, [], Cli>({
      loader: async () => withCli((await actions()).listKeys),
      parameters: { flags: { ...shown, serviceAccount }, aliases: shownAliases },
      docs: help('List your API keys', {
        examples: ['keys list', "keys list --jq '.[] | select(.is_current) | .prefix'"],
      }),
    }),
    create: buildCommand<KeyCreation, [string], Cli>({
      loader: async () => withCli((await actions()).createKey),
      parameters: {
        flags: {
          json,
          scope: textsFlag('Permission that the key may use; repeatable; default all of its user', 'permission'),
          days: countFlag('Validity in days, at most 365; default 90', 'days'),
          serviceAccount,
        },
        positional: one('name', 'What uses the key'),
      },
      docs: help('Create a key for a program; it is shown once', {
        examples: [
          'keys create "Nightly run" --scope connections.run --days 30',
          'keys create ci --service-account ci',
        ],
      }),
    }),
    rotate: buildCommand<{ json: boolean; graceHours?: number }, [], Cli>({
      loader: async () => withCli((await actions()).rotateKey),
      parameters: {
        flags: { json, graceHours: countFlag('How long the previous key stays valid; default 24', 'hours') },
      },
      docs: help('Rotate your API key; the new one is shown once and replaces the stored one', {
        examples: ['keys rotate', 'keys rotate --grace-hours 0'],
      }),
    }),
    revoke: buildCommand<{ yes: boolean; serviceAccount?: string }, [string], Cli>({
      loader: async () => withCli((await actions()).revokeKey),
      parameters: {
        flags: { yes, serviceAccount },
        aliases: { y: 'yes' },
        positional: one('key', 'Id or prefix of the key, as listed', keyPrefixes),
      },
      docs: help('Revoke a key immediately', { examples: ['keys revoke dpm_3fa85f64'] }),
    }),
  },
  docs: { brief: 'Manage API keys: list, create, rotate, revoke' },
});

export const serviceAccounts = buildRouteMap({
  routes: {
    list: buildCommand<Shown, [], Cli>({
      loader: async () => withCli((await actions()).listServiceAccounts),
      parameters: { flags: shown, aliases: shownAliases },
      docs: help('List service accounts', { examples: ['service-accounts list'] }),
    }),
    create: buildCommand<{ json: boolean; role?: readonly string[] }, [string], Cli>({
      loader: async () => withCli((await actions()).createServiceAccount),
      parameters: {
        flags: { json, role: textsFlag('Role to assign; repeatable', 'name') },
        positional: one('name', 'Name of the program'),
      },
      docs: help('Create a user for a program', { examples: ['service-accounts create ci --role Creator'] }),
    }),
    delete: buildCommand<{ yes: boolean }, [string], Cli>({
      loader: async () => withCli((await actions()).deleteServiceAccount),
      parameters: { flags: { yes }, aliases: { y: 'yes' }, positional: one('service account', 'Name or id') },
      docs: help('Delete a service account and revoke its keys', { examples: ['service-accounts delete ci'] }),
    }),
  },
  docs: { brief: 'Manage service accounts: list, create, delete' },
});

export const usage = buildCommand<Shown & { range?: string; connections: boolean }, [], Cli>({
  loader: async () => withCli((await import('../actions/usage.ts')).usage),
  parameters: {
    flags: {
      ...shown,
      range: textFlag('last_30_days, last_month, …; default current_billing_period', 'range'),
      connections: switchFlag('Break down by connection'),
    },
    aliases: shownAliases,
  },
  docs: help('Show rows and credits used against the plan limits', {
    examples: ['usage', 'usage --range last_month --connections'],
  }),
});
