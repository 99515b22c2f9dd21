import type { CommandContext } from '@stricli/core';
import type { ApiClient } from '../api.ts';
import { currentLogin, type Login, wantsColours } from './settings.ts';
import { printable, type Style, styleOf } from './style.ts';
import { type Output, TABLE } from './format.ts';

/** The context that every command receives. */
export interface Cli extends CommandContext {
  readonly process: NodeJS.Process;
  style: Style;
  /** How the command shows its result. */
  output: Output;
  /** The result, if it is data: printed in the requested format when the command ends. */
  document: unknown;
  /** Standard input and output are terminals, so prompts are possible. */
  interactive: boolean;
  login(): Login;
  /** The typed client, loaded on first use: importing it takes most of a command's start-up time. */
  api(): Promise<ApiClient>;
  /** An authenticated request to a path of the service, for what the typed client does not cover. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Writes a line to standard output. */
  print(text: string): void;
  /** Writes a line to standard error, so that it never mixes with the result. */
  note(text: string): void;
}

export function createCli(process: NodeJS.Process): Cli {
  return {
    process,
    output: TABLE,
    document: undefined,
    style: styleOf(wantsColours(process.stdout)),
    interactive: process.stdin.isTTY && process.stdout.isTTY,
    login: currentLogin,
    async api() {
      const { url, key } = currentLogin();
      const { createApiClient } = await import('../api.ts');
      return createApiClient(url, key);
    },
    async fetch(path, init = {}) {
      const { url, key } = currentLogin();
      const { NetworkError } = await import('../network-error.ts');
      const headers = { ...(init.headers as Record<string, string>), authorization: `Bearer ${key}` };
      return fetch(url + path, { ...init, headers }).catch((error: unknown) => {
        throw new NetworkError(url, error);
      });
    },
    print: (text) => void process.stdout.write(`${printable(text)}\n`),
    note: (text) => void process.stderr.write(`${printable(text)}\n`),
  };
}
