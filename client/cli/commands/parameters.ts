import type { TypedFlagParameter } from '@stricli/core';
import type { Cli } from '../context.ts';

// oxlint-disable-next-line typescript/no-generated-empty-object-type -- a command without flags is meant
export type NoFlags = Record<never, never>;

/** The library hands its context over as `this`; ours take it as what comes first. */
export const withCli = <Args extends unknown[]>(work: (cli: Cli, ...args: Args) => void | Promise<void>) =>
  function (this: Cli, ...args: Args) {
    return work(this, ...args);
  };

const text = (value: string) => value;

/** A flag that takes a text. */
export const textFlag = (brief: string, placeholder = 'text') =>
  ({ kind: 'parsed', parse: text, brief, placeholder, optional: true }) as const;

export const textsFlag = (brief: string, placeholder = 'text') =>
  ({ kind: 'parsed', parse: text, brief, placeholder, optional: true, variadic: true }) as const;

export const countFlag = (brief: string, placeholder = 'number') =>
  ({ kind: 'parsed', parse: wholeNumber, brief, placeholder, optional: true }) as const;

export const switchFlag = (brief: string) => ({ kind: 'boolean', brief, default: false, withNegated: false }) as const;

export const json = switchFlag('What the service says, as JSON') satisfies TypedFlagParameter<boolean>;
export const yes = switchFlag('Do it without asking') satisfies TypedFlagParameter<boolean>;

/** One argument. */
export const one = (placeholder: string, brief: string) =>
  ({ kind: 'tuple', parameters: [{ placeholder, brief, parse: text }] }) as const;

export const oneOrNone = (placeholder: string, brief: string) =>
  ({ kind: 'tuple', parameters: [{ placeholder, brief, parse: text, optional: true }] }) as const;

export const RUN = 'A run: its id, CONNECTION#NUMBER, or CONNECTION for its last one';
export const CONNECTION = 'A connection: its name, the beginning of it, or its id';

function wholeNumber(value: string): number {
  if (!/^\d+$/.test(value)) throw new SyntaxError(`"${value}" is no whole number`);
  return Number(value);
}
