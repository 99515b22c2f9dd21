import type { CommandContext } from '@stricli/core';
import type { ApiClient } from '../api.ts';
import { currentLogin, type Login, wantsColours } from './settings.ts';
import { printable, type Style, styleOf } from './style.ts';

/** The context that every command receives. */
export interface Cli extends CommandContext {
  readonly process: NodeJS.Process;
  style: Style;
  /** Standard input and output are terminals, so prompts are possible. */
  interactive: boolean;
  login(): Login;
  /** The typed client, loaded on first use: importing it takes most of a command's start-up time. */
  api(): Promise<ApiClient>;
  /** An authenticated request for responses that are not JSON. */
  fetch(path: string): Promise<Response>;
  /** Writes a line to standard output. */
  print(text: string): void;
  /** Writes a line to standard error, so that it never mixes with the result. */
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
    print: (text) => void process.stdout.write(`${printable(text)}\n`),
    note: (text) => void process.stderr.write(`${printable(text)}\n`),
  };
}
