import { confirm, isCancel, multiselect, password, select, text } from '@clack/prompts';
import type { Cli } from './context.ts';
import { Refused, UsageError } from './exit.ts';

export interface Question {
  message: string;
  initial?: string;
  placeholder?: string;
  /** What to do where nobody can be asked. */
  hint?: string;
  /** Of what was typed: what is wrong with it. */
  problem?(value: string): string | undefined;
}

export async function askText(cli: Cli, question: Question): Promise<string> {
  requireTerminal(cli, question);
  const { message, initial, placeholder, problem } = question;
  return answered(
    await text({
      message,
      placeholder,
      initialValue: initial,
      validate: (value) => problem?.(value ?? ''),
    }),
  );
}

/** Shows a mark for each letter, never the letter. */
export async function askSecret(cli: Cli, question: Question): Promise<string> {
  requireTerminal(cli, question);
  return answered(await password({ message: question.message, validate: (value) => question.problem?.(value ?? '') }));
}

type Choices = Record<string, string>;
const options = (choices: Choices) => Object.entries(choices).map(([value, label]) => ({ value, label }));

export async function askChoice(cli: Cli, question: Question, choices: Choices): Promise<string> {
  requireTerminal(cli, question);
  return answered(
    await select<string>({ message: question.message, options: options(choices), initialValue: question.initial }),
  );
}

export async function askChoices(cli: Cli, question: Question, choices: Choices): Promise<string[]> {
  requireTerminal(cli, question);
  return answered(await multiselect<string>({ message: question.message, options: options(choices), required: false }));
}

export const confirmed = async (message: string, initialValue = false): Promise<boolean> =>
  answered(await confirm({ message, initialValue }));

function requireTerminal(cli: Cli, { message, hint }: Question): void {
  if (cli.interactive) return;
  throw new UsageError(`${message}: nobody can be asked here${hint ? `; ${hint}` : ''}`);
}

/** Ctrl-C in a prompt. */
function answered<Value>(value: Value): Exclude<Value, symbol> {
  if (isCancel(value)) throw new Refused('interrupted', 'Nothing was done');
  return value as Exclude<Value, symbol>;
}
