import { buildCommand } from '@stricli/core';
import type { RawCall } from '../actions/raw-call.ts';
import type { Cli } from '../context.ts';
import type { Shown } from '../output.ts';
import { PAGES } from '../pages.ts';
import {
  connectionNames,
  help,
  one,
  oneOrNone,
  shown,
  shownAliases,
  switchFlag,
  textFlag,
  textsFlag,
  withCli,
} from './parameters.ts';

export const status = buildCommand<Shown, [], Cli>({
  loader: async () => withCli((await import('../actions/status.ts')).status),
  parameters: { flags: shown, aliases: shownAliases },
  docs: help('Show the service, and the connections that need attention', {
    examples: ['status', "status --jq '.connections.need_attention[].name'"],
  }),
});

export const openPage = buildCommand<{ print: boolean }, [string?], Cli>({
  loader: async () => withCli((await import('../actions/open.ts')).open),
  parameters: {
    flags: { print: switchFlag('Print the address instead') },
    positional: oneOrNone('page', 'Page of the console, a connection, or CONNECTION#NUMBER for a run', async (cli) => [
      ...PAGES,
      ...(await connectionNames(cli)),
    ]),
  },
  docs: help('Open the console in the browser', {
    about: `Pages: ${PAGES.join(', ')}, docs.`,
    examples: ['open', 'open cases', 'open "Shop to analytics#12"', 'open "Shop to analytics" --print'],
  }),
});

export const api = buildCommand<Shown & RawCall, [string], Cli>({
  loader: async () => withCli((await import('../actions/raw-call.ts')).rawCall),
  parameters: {
    flags: {
      ...shown,
      method: textFlag('HTTP method; default GET, or POST with a body', 'method'),
      field: textsFlag('Field of the JSON body, as text or JSON; repeatable', 'name=value'),
      header: textsFlag('Request header; repeatable', '"Name: value"'),
      input: textFlag('File with the body; - reads standard input', 'path'),
    },
    aliases: { ...shownAliases, X: 'method', F: 'field' },
    positional: one('path', 'Path of the REST API, such as /connections'),
  },
  docs: help('Send a request to the REST API', {
    about: 'Prints the response. The API reference is at /docs of the service.',
    examples: [
      "api /connections --jq '.[].name'",
      'api /connections/019a0000-0000-7000-8000-000000000001 -F status=paused',
      'api /automation/triggers --input trigger.json --header "Idempotency-Key: 42"',
    ],
  }),
});
