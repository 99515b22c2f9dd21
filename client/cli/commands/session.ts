import { buildCommand, buildRouteMap } from '@stricli/core';
import type { Cli } from '../context.ts';
import { help, type NoFlags, one, oneOrNone, shown, shownAliases, switchFlag, withCli } from './parameters.ts';
import type { Shown } from '../output.ts';
import { contexts as knownContexts } from '../settings.ts';

export const login = buildCommand<{ keyStdin: boolean }, [string?], Cli>({
  loader: async () => withCli((await import('../actions/session.ts')).login),
  parameters: {
    flags: { keyStdin: switchFlag('Read the API key from standard input') },
    positional: oneOrNone('url', 'URL of the service'),
  },
  docs: help('Sign in with an API key', {
    about:
      'Verifies the key and stores it with the URL in a file that only you can read.\nDATA_PIPELINES_URL and DATA_PIPELINES_KEY override the stored values.',
    examples: ['login https://pipelines.example.com', 'login https://staging.example.com --context staging'],
  }),
});

export const logout = buildCommand<NoFlags, [], Cli>({
  loader: async () => withCli((await import('../actions/session.ts')).logout),
  parameters: {},
  docs: help('Remove the stored key', { examples: ['logout', 'logout --context staging'] }),
});

export const whoami = buildCommand<Shown, [], Cli>({
  loader: async () => withCli((await import('../actions/session.ts')).whoami),
  parameters: { flags: shown, aliases: shownAliases },
  docs: help('Show the current user, account and key', { examples: ['whoami', 'whoami --jq .email'] }),
});

const CONTEXT_NAME = 'Context name, as given to `login --context`';
const contextNames = () => knownContexts().map(({ name }) => name);

export const contexts = buildRouteMap({
  routes: {
    list: buildCommand<Shown, [], Cli>({
      loader: async () => withCli((await import('../actions/contexts.ts')).listContexts),
      parameters: { flags: shown, aliases: shownAliases },
      docs: help('List the services that you are signed in to', { examples: ['contexts list'] }),
    }),
    use: buildCommand<NoFlags, [string], Cli>({
      loader: async () => withCli((await import('../actions/contexts.ts')).useNamed),
      parameters: { positional: one('context', CONTEXT_NAME, contextNames) },
      docs: help('Select the service for the following commands', { examples: ['contexts use staging'] }),
    }),
    delete: buildCommand<NoFlags, [string], Cli>({
      loader: async () => withCli((await import('../actions/contexts.ts')).deleteContext),
      parameters: { positional: one('context', CONTEXT_NAME, contextNames) },
      docs: help('Remove the stored key of a context', { examples: ['contexts delete staging'] }),
    }),
  },
  docs: { brief: 'Manage contexts, one per service: list, use, delete' },
});

export const completion = buildCommand<NoFlags, ['bash' | 'zsh' | 'fish'], Cli>({
  loader: async () => withCli((await import('../completion.ts')).printScript),
  parameters: {
    positional: {
      kind: 'tuple',
      parameters: [
        {
          placeholder: 'bash|zsh|fish',
          brief: 'Shell',
          parse: (shell: string) => {
            if (shell === 'bash' || shell === 'zsh' || shell === 'fish') return shell;
            throw new SyntaxError(`"${shell}" is not supported; use bash, zsh or fish`);
          },
          proposeCompletions: () => ['bash', 'zsh', 'fish'],
        },
      ],
    },
  },
  docs: help('Print the completion script for a shell', {
    about:
      'bash: add eval "$(data-pipelines completion bash)" to ~/.bashrc; zsh: the same with zsh in ~/.zshrc;\nfish: data-pipelines completion fish > ~/.config/fish/completions/data-pipelines.fish',
    examples: ['completion bash', 'completion zsh', 'completion fish'],
  }),
});
