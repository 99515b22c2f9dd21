import type { Parameter } from './actions/connectors.ts';
import { askChoice, askChoices, askSecret, askText, type Question } from './ask.ts';
import type { Cli } from './context.ts';
import { UsageError } from './exit.ts';

export type Values = Record<string, unknown>;

/** Whether the form shows the parameter, given the other values. */
export const isVisible = ({ visible_when }: Parameter, values: Values): boolean =>
  !visible_when || visible_when.equals.includes(values[visible_when.parameter] as string);

/** Prompts for each parameter without a value; optional parameters of the group "advanced" keep their defaults. */
export async function askParameters(cli: Cli, parameters: Parameter[], given: Values): Promise<Values> {
  const values: Values = { ...defaultsOf(parameters), ...given };
  for (const parameter of parameters.toSorted((a, b) => a.order - b.order)) {
    const isWanted = parameter.required || parameter.group !== 'advanced';
    if (parameter.name in given || !isWanted || parameter.dynamic_possible_values || !isVisible(parameter, values))
      continue;
    const value = await askParameter(cli, parameter);
    if (value === undefined) continue;
    values[parameter.name] = value;
    given = { ...given, [parameter.name]: value };
  }
  return given;
}

const defaultsOf = (parameters: Parameter[]): Values =>
  Object.fromEntries(parameters.filter((one) => one.default != null).map((one) => [one.name, one.default]));

/** Returns undefined to keep the default. `choices`: values that the connected system offers. */
export async function askParameter(
  cli: Cli,
  parameter: Parameter,
  choices: Record<string, string> | null = parameter.possible_values,
): Promise<unknown> {
  const question: Question = {
    message: `${parameter.label}${parameter.required ? '' : ' (optional)'}`,
    placeholder: parameter.placeholder ?? parameter.description ?? undefined,
    initial: initialOf(parameter.default),
    problem: (text) => problemOf(parameter, text),
  };
  if (choices && parameter.type === 'multi_enum') return askChoices(cli, question, choices);
  if (choices) return askChoice(cli, question, choices);
  if (parameter.type === 'boolean') return (await askChoice(cli, question, { true: 'Yes', false: 'No' })) === 'true';
  const text = await (parameter.secret ? askSecret(cli, question) : askText(cli, question));
  return text === '' ? undefined : valueOf(parameter, text);
}

const initialOf = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;

/** Validates input against the connector's schema and returns the problem, if any. */
export function problemOf(parameter: Parameter, text: string): string | undefined {
  if (text === '') return parameter.required && parameter.default == null ? 'Required' : undefined;
  try {
    const value = valueOf(parameter, text);
    if (typeof value === 'number' && parameter.minimum !== null && value < parameter.minimum) {
      return `Must be at least ${parameter.minimum}`;
    }
    if (typeof value === 'number' && parameter.maximum !== null && value > parameter.maximum) {
      return `Must be at most ${parameter.maximum}`;
    }
  } catch (error) {
    return (error as Error).message;
  }
  if (parameter.pattern && parameter.type === 'string' && !new RegExp(parameter.pattern).test(text)) {
    return `Must match ${parameter.pattern}`;
  }
  return undefined;
}

/** Converts text to the parameter's type. @throws UsageError. */
export function valueOf(parameter: Parameter, text: string): unknown {
  const wrong = (what: string) =>
    new UsageError(`${parameter.name}: "${parameter.secret ? '…' : text}" is not ${what}`);
  switch (parameter.type) {
    case 'integer':
    case 'number': {
      const value = Number(text);
      if (text.trim() === '' || Number.isNaN(value)) throw wrong('a number');
      if (parameter.type === 'integer' && !Number.isInteger(value)) throw wrong('a whole number');
      return value;
    }
    case 'boolean':
      if (text !== 'true' && text !== 'false') throw wrong('true or false');
      return text === 'true';
    case 'string_list':
    case 'multi_enum':
      return text.startsWith('[') ? parsed(text, wrong) : text.split(',').map((part) => part.trim());
    case 'object':
    case 'ssh_tunnel':
      return parsed(text, wrong);
    default:
      return text;
  }
}

function parsed(text: string, wrong: (what: string) => UsageError): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw wrong('valid JSON');
  }
}
