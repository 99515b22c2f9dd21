import type { RouterOutputs } from '../api.ts';

export type Connector = RouterOutputs['connectors']['list'][number];
export type Parameter = Connector['parameters'][number];
/** By name, as the service takes them. A field without input is absent; an object is kept as its JSON text. */
export type ParameterValues = Readonly<Record<string, unknown>>;

/** Stands in for a stored secret; sent back, it leaves the secret unchanged. */
export const MASK = '**********';

export const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);

/** The effective value: the input, or else the default. */
export const effective = ({ name, default: fallback }: Parameter, values: ParameterValues): unknown =>
  values[name] === undefined ? fallback : values[name];

/** Some parameters apply only while another one has a certain value. */
export function isVisible(
  { visible_when }: Parameter,
  all: { parameters: readonly Parameter[]; values: ParameterValues },
): boolean {
  if (!visible_when) return true;
  const other = all.parameters.find(({ name }) => name === visible_when.parameter);
  if (!other || !isVisible(other, all)) return false;
  return visible_when.equals.some((wanted) => wanted === effective(other, all.values));
}

/** The error that the parameter's own definition finds in a value; null for none. */
export function problemOf(parameter: Parameter, value: unknown): string | null {
  const verb = parameter.type === 'enum' ? 'Select' : 'Enter';
  if (isEmpty(value)) return parameter.required ? `${verb} a value for ${parameter.label}` : null;
  if (parameter.secret && value === MASK) return null;
  const { type, pattern, minimum, maximum } = parameter;
  if (type === 'integer' || type === 'number') {
    const number = Number(value);
    if (Number.isNaN(number)) return 'Enter a number';
    if (type === 'integer' && !Number.isInteger(number)) return 'Enter a whole number';
    if (minimum !== null && number < minimum) return `Must be ${minimum} or more`;
    if (maximum !== null && number > maximum) return `Must be ${maximum} or less`;
  }
  if (type === 'string' && pattern !== null && !matches(pattern, String(value))) return 'Invalid format';
  if (type === 'object' && typeof value === 'string' && parsedObject(value) === null)
    return 'Enter a JSON object, such as {"name": "value"}';
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

/** A value as the service takes it. */
export function wireValue({ type }: Parameter, value: unknown): unknown {
  if (type === 'integer' || type === 'number') return isEmpty(value) ? null : Number(value);
  if (type === 'object' && typeof value === 'string' && value !== MASK)
    return value === '' ? null : parsedObject(value);
  return value;
}

/** Whether the value of a visible parameter differs from the stored one. */
const isChanged = (parameter: Parameter, values: ParameterValues, stored: ParameterValues): boolean => {
  const value = wireValue(parameter, values[parameter.name]);
  if (isEmpty(value) && isEmpty(stored[parameter.name])) return false;
  return JSON.stringify(value) !== JSON.stringify(wireValue(parameter, stored[parameter.name]));
};

/** Why stored secrets must be entered again: labels of the changed parameters that decide where the secrets go. */
export const redirections = (
  all: { parameters: readonly Parameter[]; values: ParameterValues },
  stored: ParameterValues,
): string[] =>
  all.parameters
    .filter((parameter) => parameter.directs_secrets && isVisible(parameter, all))
    .filter((parameter) => isChanged(parameter, all.values, stored))
    .map(({ label }) => label);

/** The visible parameters that differ from `stored`. A cleared one is null, which restores the default. */
export function changedValues(
  all: { parameters: readonly Parameter[]; values: ParameterValues },
  stored: ParameterValues,
): Record<string, unknown> {
  const changed = all.parameters.flatMap((parameter): [string, unknown][] => {
    const { name } = parameter;
    if (!isVisible(parameter, all)) return [];
    const value = wireValue(parameter, all.values[name]);
    if (!isChanged(parameter, all.values, stored)) return [];
    return [[name, isEmpty(value) && !Array.isArray(value) ? null : value]];
  });
  return Object.fromEntries(changed);
}
