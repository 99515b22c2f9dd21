import type { CommandContext } from '@stricli/core';
import type { ApiClient } from '../api.ts';
import { currentLogin, type Login, wantsColours } from './settings.ts';
import { type Style, styleOf } from './style.ts';

/** What every command has. */
export interface Cli extends CommandContext {
  readonly process: NodeJS.Process;
  style: Style;
  /** Both ends are a person's terminal: questions may be asked. */
  interactive: boolean;
  login(): Login;
  /** The typed client; loaded here, since most of the start-up time of a command is its. */
  api(): Promise<ApiClient>;
  /** For what is no JSON: a path of the service. */
  fetch(path: string): Promise<Response>;
  say(text: string): void;
  /** Beside the result: standard error. */
  note(text: string): void;
}

export function createCli(process: NodeJS.Process): Cli {
  return {
    process,
    style: styleOf(wantsColours(process.stdout)),
    interactive: process.stdin.isTTY && process.stdout.isTTY,
    login: currentLogin,
    async api() {
      const { url, key } = currentLogin();
      const { createApiClient } = await import('../api.ts');
      return createApiClient(url, key);
    },
    fetch(path) {
      const { url, key } = currentLogin();
      return fetch(new URL(path, url), { headers: { authorization: `Bearer ${key}` } });
    },
    say: (text) => void process.stdout.write(`${text}\n`),
    note: (text) => void process.stderr.write(`${text}\n`),
  };
}
