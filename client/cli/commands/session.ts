import { buildCommand } from '@stricli/core';
import type { Cli } from '../context.ts';
import type { NoFlags } from './parameters.ts';
import { json, oneOrNone, switchFlag, withCli } from './parameters.ts';

export const login = buildCommand<{ keyStdin: boolean }, [string?], Cli>({
  loader: async () => withCli((await import('../actions/session.ts')).login),
  parameters: {
    flags: { keyStdin: switchFlag('Read the API key from standard input') },
    positional: oneOrNone('url', 'URL of the service'),
  },
  docs: {
    brief: 'Sign in with an API key',
    fullDescription:
      'Verifies the key and stores it with the URL in a file that only you can read.\nDATA_PIPELINES_URL and DATA_PIPELINES_KEY override the stored values.',
  },
});

export const logout = buildCommand<NoFlags, [], Cli>({
  loader: async () => withCli((await import('../actions/session.ts')).logout),
  parameters: {},
  docs: { brief: 'Remove the stored key' },
});

export const whoami = buildCommand<{ json: boolean }, [], Cli>({
  loader: async () => withCli((await import('../actions/session.ts')).whoami),
  parameters: { flags: { json } },
  docs: { brief: 'Show the current user, account and key' },
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
  docs: {
    brief: 'Print the completion script for a shell',
    fullDescription:
      'bash: add eval "$(data-pipelines completion bash)" to ~/.bashrc; zsh: the same with zsh in ~/.zshrc;\nfish: data-pipelines completion fish > ~/.config/fish/completions/data-pipelines.fish',
  },
});
