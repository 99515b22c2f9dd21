import type { RouterOutputs } from '../api.ts';

export type Connector = RouterOutputs['connectors']['list'][number];
export type Parameter = Connector['parameters'][number];
/** By name, as the service takes them. Absent: nothing was typed. An object is kept as the text that is typed. */
export type Values = Readonly<Record<string, unknown>>;

/** How the service shows a secret that is stored; sent back it means: unchanged. */
export const MASK = '**********';

export const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);

/** The value that counts: what is typed, else what the service would fill in. */
export const effective = ({ name, default: fallback }: Parameter, values: Values): unknown =>
  values[name] === undefined ? fallback : values[name];

/** Some parameters are asked for only while another one has a certain value. */
export function isVisible(
  { visible_when }: Parameter,
  all: { parameters: readonly Parameter[]; values: Values },
): boolean {
  if (!visible_when) return true;
  const other = all.parameters.find(({ name }) => name === visible_when.parameter);
  if (!other || !isVisible(other, all)) return false;
  return visible_when.equals.some((wanted) => wanted === effective(other, all.values));
}

/** What the schema alone can tell to be wrong with a value; null: nothing. */
export function problemOf(parameter: Parameter, value: unknown): string | null {
  if (isEmpty(value)) return parameter.required ? `${parameter.label} is needed` : null;
  if (parameter.secret && value === MASK) return null;
  const { type, pattern, minimum, maximum } = parameter;
  if (type === 'integer' || type === 'number') {
    const number = Number(value);
    if (Number.isNaN(number)) return 'Should be a number';
    if (type === 'integer' && !Number.isInteger(number)) return 'Should be a whole number';
    if (minimum !== null && number < minimum) return `Should be ${minimum} or more`;
    if (maximum !== null && number > maximum) return `Should be ${maximum} or less`;
  }
  if (type === 'string' && pattern !== null && !matches(pattern, String(value))) return 'Has not the expected form';
  if (type === 'object' && typeof value === 'string' && parsedObject(value) === null)
    return 'Should be a JSON object: {"name": "value"}';
  return null;
}

function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(value);
  } catch {
    return true;
  }
}

function parsedObject(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** One value as the service takes it. */
export function wireValue({ type }: Parameter, value: unknown): unknown {
  if (type === 'integer' || type === 'number') return isEmpty(value) ? null : Number(value);
  if (type === 'object' && typeof value === 'string' && value !== MASK)
    return value === '' ? null : parsedObject(value);
  return value;
}

/** What is sent of a form: the visible parameters that differ from `stored`; emptied ones as null, back to the default. */
export function changedValues(
  all: { parameters: readonly Parameter[]; values: Values },
  stored: Values,
): Record<string, unknown> {
  const changed = all.parameters.flatMap((parameter): [string, unknown][] => {
    const { name } = parameter;
    if (!isVisible(parameter, all)) return [];
    const value = wireValue(parameter, all.values[name]);
    if (isEmpty(value) && isEmpty(stored[name])) return [];
    if (JSON.stringify(value) === JSON.stringify(wireValue(parameter, stored[name]))) return [];
    return [[name, isEmpty(value) && !Array.isArray(value) ? null : value]];
  });
  return Object.fromEntries(changed);
}
