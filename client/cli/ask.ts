import { confirm, isCancel, multiselect, password, select, text } from '@clack/prompts';
import type { Cli } from './context.ts';
import { CommandError, UsageError } from './exit.ts';
import { printable } from './style.ts';

export interface Question {
  message: string;
  initial?: string;
  placeholder?: string;
  /** How to give the answer when no terminal is attached. */
  hint?: string;
  /** Returns what is wrong with the input, or undefined. */
  problem?(value: string): string | undefined;
}

export async function askText(cli: Cli, question: Question): Promise<string> {
  requireTerminal(cli, question);
  const { message, initial, placeholder, problem } = question;
  return answered(
    await text({
      message: printable(message),
      placeholder: placeholder === undefined ? undefined : printable(placeholder),
      initialValue: initial,
      validate: (value) => problem?.(value ?? ''),
    }),
  );
}

/** Echoes a mask character instead of the input. */
export async function askSecret(cli: Cli, question: Question): Promise<string> {
  requireTerminal(cli, question);
  return answered(
    await password({ message: printable(question.message), validate: (value) => question.problem?.(value ?? '') }),
  );
}

type Choices = Record<string, string>;
const options = (choices: Choices) =>
  Object.entries(choices).map(([value, label]) => ({ value, label: printable(label) }));

export async function askChoice(cli: Cli, question: Question, choices: Choices): Promise<string> {
  requireTerminal(cli, question);
  return answered(
    await select<string>({
      message: printable(question.message),
      options: options(choices),
      initialValue: question.initial,
    }),
  );
}

export async function askChoices(cli: Cli, question: Question, choices: Choices): Promise<string[]> {
  requireTerminal(cli, question);
  return answered(
    await multiselect<string>({ message: printable(question.message), options: options(choices), required: false }),
  );
}

export const confirmed = async (message: string, initialValue = false): Promise<boolean> =>
  answered(await confirm({ message: printable(message), initialValue }));

function requireTerminal(cli: Cli, { message, hint }: Question): void {
  if (cli.interactive) return;
  throw new UsageError(`${message} is missing and no terminal is attached to ask for it${hint ? `; ${hint}` : ''}`);
}

/** @throws CommandError when the prompt is cancelled by Ctrl-C. */
function answered<Value>(value: Value): Exclude<Value, symbol> {
  if (isCancel(value)) throw new CommandError('interrupted', 'Cancelled');
  return value as Exclude<Value, symbol>;
}
