import { buildCommand, buildRouteMap } from '@stricli/core';
import type { Cli } from '../context.ts';
import { countFlag, json, one, oneOrNone, switchFlag, textFlag, textsFlag, yes, withCli } from './parameters.ts';

const userActions = () => import('../actions/users-and-keys.ts');
const automation = () => import('../actions/automation.ts');

export const users = buildRouteMap({
  routes: {
    list: buildCommand<{ json: boolean }, [], Cli>({
      loader: async () => withCli((await userActions()).listUsers),
      parameters: { flags: { json } },
      docs: { brief: 'List users' },
    }),
    invite: buildCommand<{ json: boolean; name?: string; role?: readonly string[] }, [string], Cli>({
      loader: async () => withCli((await userActions()).inviteUser),
      parameters: {
        flags: { json, name: textFlag('Full name'), role: textsFlag('Role to assign; repeatable', 'name') },
        positional: one('email', 'Email address of the new user'),
      },
      docs: { brief: 'Invite a user; the invitation link is shown once' },
    }),
    disable: buildCommand<{ json: boolean; yes: boolean }, [string], Cli>({
      loader: async () => withCli((await userActions()).disableUser),
      parameters: { flags: { json, yes }, aliases: { y: 'yes' }, positional: one('user', 'Email address or id') },
      docs: { brief: 'Disable a user' },
    }),
  },
  docs: { brief: 'Manage users: list, invite, disable' },
});

export const keys = buildRouteMap({
  routes: {
    list: buildCommand<{ json: boolean }, [], Cli>({
      loader: async () => withCli((await userActions()).listKeys),
      parameters: { flags: { json } },
      docs: { brief: 'List your API keys' },
    }),
    rotate: buildCommand<{ json: boolean; graceHours?: number }, [], Cli>({
      loader: async () => withCli((await userActions()).rotateKey),
      parameters: {
        flags: { json, graceHours: countFlag('How long the previous key stays valid; default 24', 'hours') },
      },
      docs: { brief: 'Rotate your API key; the new one is shown once and replaces the stored one' },
    }),
    revoke: buildCommand<{ yes: boolean }, [string], Cli>({
      loader: async () => withCli((await userActions()).revokeKey),
      parameters: { flags: { yes }, aliases: { y: 'yes' }, positional: one('key', 'Id or prefix of the key') },
      docs: { brief: 'Revoke a key immediately' },
    }),
  },
  docs: { brief: 'Manage API keys: list, rotate, revoke' },
});

export const usage = buildCommand<{ json: boolean; range?: string; connections: boolean }, [], Cli>({
  loader: async () => withCli((await import('../actions/usage.ts')).usage),
  parameters: {
    flags: {
      json,
      range: textFlag('last_30_days, last_month, …; default current_billing_period', 'range'),
      connections: switchFlag('Break down by connection'),
    },
  },
  docs: { brief: 'Show rows and credits used against the plan limits' },
});

export const triggers = buildRouteMap({
  routes: {
    list: buildCommand<{ json: boolean; system: boolean }, [], Cli>({
      loader: async () => withCli((await automation()).listTriggers),
      parameters: { flags: { json, system: switchFlag('Include built-in triggers') } },
      docs: { brief: 'List triggers' },
    }),
    test: buildCommand<{ json: boolean; last?: number }, [string], Cli>({
      loader: async () => withCli((await automation()).testRule),
      parameters: {
        flags: { json, last: countFlag('Number of recent events to test; default 100', 'events') },
        positional: one('rule', 'Rule expression, or the name of a trigger'),
      },
      docs: { brief: 'Test a rule against past events' },
    }),
    delete: buildCommand<{ yes: boolean }, [string], Cli>({
      loader: async () => withCli((await automation()).deleteTrigger),
      parameters: { flags: { yes }, aliases: { y: 'yes' }, positional: one('trigger', 'Trigger name or id') },
      docs: { brief: 'Delete a trigger' },
    }),
  },
  docs: { brief: 'Manage triggers: list, test, delete' },
});

export const cases = buildCommand<{ json: boolean; status?: string }, [string?], Cli>({
  loader: async () => withCli((await automation()).cases),
  parameters: {
    flags: { json, status: textFlag('Filter by status; with a case number, set its status', 'status') },
    positional: oneOrNone('number', 'Case number'),
  },
  docs: { brief: 'List the cases that triggers opened, or show one' },
});
