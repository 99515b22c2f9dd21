import { buildCommand } from '@stricli/core';
import type { Cli } from '../context.ts';
import type { NoFlags } from './parameters.ts';
import { json, oneOrNone, switchFlag, withCli } from './parameters.ts';

export const login = buildCommand<{ keyStdin: boolean }, [string?], Cli>({
  loader: async () => withCli((await import('../actions/session.ts')).login),
  parameters: {
    flags: { keyStdin: switchFlag('Read the API key from standard input') },
    positional: oneOrNone('url', 'Address of the service'),
  },
  docs: {
    brief: 'Sign in with an API key',
    fullDescription:
      'Checks the key and stores it with the address in a file that only you can read.\nDATA_PIPELINES_URL and DATA_PIPELINES_KEY win over what is stored.',
  },
});

export const logout = buildCommand<NoFlags, [], Cli>({
  loader: async () => withCli((await import('../actions/session.ts')).logout),
  parameters: {},
  docs: { brief: 'Forget the stored key' },
});

export const whoami = buildCommand<{ json: boolean }, [], Cli>({
  loader: async () => withCli((await import('../actions/session.ts')).whoami),
  parameters: { flags: { json } },
  docs: { brief: 'Whose key it is, and for how long' },
});

export const completion = buildCommand<NoFlags, ['bash' | 'zsh' | 'fish'], Cli>({
  loader: async () => withCli((await import('../completion.ts')).printScript),
  parameters: {
    positional: {
      kind: 'tuple',
      parameters: [
        {
          placeholder: 'bash|zsh|fish',
          brief: 'The shell',
          parse: (shell: string) => {
            if (shell === 'bash' || shell === 'zsh' || shell === 'fish') return shell;
            throw new SyntaxError(`"${shell}" is none of bash, zsh and fish`);
          },
          proposeCompletions: () => ['bash', 'zsh', 'fish'],
        },
      ],
    },
  },
  docs: {
    brief: 'Completion for your shell',
    fullDescription:
      'bash: eval "$(data-pipelines completion bash)" in ~/.bashrc, zsh likewise in ~/.zshrc;\nfish: data-pipelines completion fish > ~/.config/fish/completions/data-pipelines.fish',
  },
});
