import type { TypedFlagParameter } from '@stricli/core';
import type { Cli } from '../context.ts';

// oxlint-disable-next-line typescript/no-generated-empty-object-type -- the type of a command without flags
export type NoFlags = Record<never, never>;

/** stricli passes its context as `this`; our actions take it as their first argument. */
export const withCli = <Args extends unknown[]>(work: (cli: Cli, ...args: Args) => void | Promise<void>) =>
  function (this: Cli, ...args: Args) {
    return work(this, ...args);
  };

const text = (value: string) => value;

export const textFlag = (brief: string, placeholder = 'text') =>
  ({ kind: 'parsed', parse: text, brief, placeholder, optional: true }) as const;

export const textsFlag = (brief: string, placeholder = 'text') =>
  ({ kind: 'parsed', parse: text, brief, placeholder, optional: true, variadic: true }) as const;

export const countFlag = (brief: string, placeholder = 'number') =>
  ({ kind: 'parsed', parse: wholeNumber, brief, placeholder, optional: true }) as const;

export const switchFlag = (brief: string) => ({ kind: 'boolean', brief, default: false, withNegated: false }) as const;

export const json = switchFlag('Print the response as JSON') satisfies TypedFlagParameter<boolean>;
export const yes = switchFlag('Skip the confirmation') satisfies TypedFlagParameter<boolean>;

export const one = (placeholder: string, brief: string) =>
  ({ kind: 'tuple', parameters: [{ placeholder, brief, parse: text }] }) as const;

export const oneOrNone = (placeholder: string, brief: string) =>
  ({ kind: 'tuple', parameters: [{ placeholder, brief, parse: text, optional: true }] }) as const;

export const RUN = 'Run id, CONNECTION#NUMBER, or CONNECTION for its latest run';
export const CONNECTION = 'Connection name, unique prefix of the name, or id';

function wholeNumber(value: string): number {
  if (!/^\d+$/.test(value)) throw new SyntaxError(`"${value}" is not a whole number`);
  return Number(value);
}
