import { buildCommand, buildRouteMap } from '@stricli/core';
import type { Cli } from '../context.ts';
import { countFlag, json, one, oneOrNone, switchFlag, textFlag, textsFlag, yes, withCli } from './parameters.ts';

const people = () => import('../actions/people.ts');
const automation = () => import('../actions/automation.ts');

export const users = buildRouteMap({
  routes: {
    list: buildCommand<{ json: boolean }, [], Cli>({
      loader: async () => withCli((await people()).listUsers),
      parameters: { flags: { json } },
      docs: { brief: 'All users' },
    }),
    invite: buildCommand<{ json: boolean; name?: string; role?: readonly string[] }, [string], Cli>({
      loader: async () => withCli((await people()).inviteUser),
      parameters: {
        flags: { json, name: textFlag('Full name'), role: textsFlag('A role; may come more than once', 'name') },
        positional: one('email', 'Address of the new user'),
      },
      docs: { brief: 'Invite a user; the link is shown once' },
    }),
    disable: buildCommand<{ json: boolean; yes: boolean }, [string], Cli>({
      loader: async () => withCli((await people()).disableUser),
      parameters: { flags: { json, yes }, aliases: { y: 'yes' }, positional: one('user', 'Address or id') },
      docs: { brief: 'Let a user in no more' },
    }),
  },
  docs: { brief: 'Users: list, invite, disable' },
});

export const keys = buildRouteMap({
  routes: {
    list: buildCommand<{ json: boolean }, [], Cli>({
      loader: async () => withCli((await people()).listKeys),
      parameters: { flags: { json } },
      docs: { brief: 'Your API keys' },
    }),
    rotate: buildCommand<{ json: boolean; graceHours?: number }, [], Cli>({
      loader: async () => withCli((await people()).rotateKey),
      parameters: {
        flags: { json, graceHours: countFlag('How long the former key still works; default 24', 'hours') },
      },
      docs: { brief: 'A new API key; stored here when this one was, and shown once' },
    }),
    revoke: buildCommand<{ yes: boolean }, [string], Cli>({
      loader: async () => withCli((await people()).revokeKey),
      parameters: { flags: { yes }, aliases: { y: 'yes' }, positional: one('key', 'Id or beginning of the key') },
      docs: { brief: 'End a key at once' },
    }),
  },
  docs: { brief: 'API keys: list, rotate, revoke' },
});

export const usage = buildCommand<{ json: boolean; range?: string; connections: boolean }, [], Cli>({
  loader: async () => withCli((await import('../actions/usage.ts')).usage),
  parameters: {
    flags: {
      json,
      range: textFlag('last_30_days, last_month, …; default: current_billing_period', 'range'),
      connections: switchFlag('By connection'),
    },
  },
  docs: { brief: 'Rows and credits, against the limits of the plan' },
});

export const triggers = buildRouteMap({
  routes: {
    list: buildCommand<{ json: boolean; system: boolean }, [], Cli>({
      loader: async () => withCli((await automation()).listTriggers),
      parameters: { flags: { json, system: switchFlag('The built-in ones as well') } },
      docs: { brief: 'All triggers' },
    }),
    test: buildCommand<{ json: boolean; last?: number }, [string], Cli>({
      loader: async () => withCli((await automation()).testRule),
      parameters: {
        flags: { json, last: countFlag('How many of the last events; default 100', 'events') },
        positional: one('rule', 'A rule, or the name of a trigger'),
      },
      docs: { brief: 'Try a rule on what has happened' },
    }),
    delete: buildCommand<{ yes: boolean }, [string], Cli>({
      loader: async () => withCli((await automation()).deleteTrigger),
      parameters: { flags: { yes }, aliases: { y: 'yes' }, positional: one('trigger', 'Name or id') },
      docs: { brief: 'Delete a trigger' },
    }),
  },
  docs: { brief: 'Triggers: list, test, delete' },
});

export const cases = buildCommand<{ json: boolean; status?: string }, [string?], Cli>({
  loader: async () => withCli((await automation()).cases),
  parameters: {
    flags: { json, status: textFlag('Only these; with a case: bring it to this state', 'status') },
    positional: oneOrNone('number', 'One of them'),
  },
  docs: { brief: 'What triggers have opened' },
});
