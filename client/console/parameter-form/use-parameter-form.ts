import { useState } from 'react';
import {
  changedValues,
  isEmpty,
  isVisible,
  MASK,
  type Parameter,
  type ParameterValues,
  problemOf,
  redirections,
} from './parameter-values.ts';
import { firstConfig, nodesOf, specProblems } from './specification/specification.ts';

export interface ParameterFormState {
  parameters: readonly Parameter[];
  values: ParameterValues;
  set(name: string, value: unknown): void;
  /** Errors by name, of fields that were left and, after `check`, of all. */
  problems: Record<string, string>;
  touch(name: string): void;
  /** Names of the fields that were left, all of them after `check`. */
  touched: ReadonlySet<string>;
  /** Stored secrets that must be entered again, because they would go to another place. */
  repeated: ReadonlySet<string>;
  /** Shows all errors from now on. True if there are none. */
  check(): boolean;
  /** The parameters to send. */
  changed(): Record<string, unknown>;
  /** Adds errors from the service, by name; each is dropped when its field changes. */
  refuse(problems: Record<string, string>): void;
}

interface FormOptions {
  /** The current parameters, secrets masked. */
  stored?: ParameterValues;
  /** Labels of changes outside the form that send the secrets to another place. */
  moved?: readonly string[];
  /** What the form begins with. Default: what is stored. */
  initial?: ParameterValues | undefined;
}

/** State of a form for a connector's parameters. */
export function useParameterForm(
  parameters: readonly Parameter[],
  { stored = {}, moved = [], initial = stored }: FormOptions = {},
): ParameterFormState {
  const [values, setValues] = useState(() => withFirstConfig(parameters, initial));
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [refused, setRefused] = useState<Record<string, string>>({});
  const all = { parameters, values };
  const reasons = [...redirections(all, stored), ...moved];
  const repeated = new Set(reasons.length === 0 ? [] : storedSecrets(parameters, stored));
  const problem = (parameter: Parameter) => {
    const value = values[parameter.name];
    const isMissing = repeated.has(parameter.name) && (value === MASK || isEmpty(value));
    if (isMissing) return `Enter again: ${reasons.join(', ')} changed`;
    return parameter.json_schema ? specProblem(parameter.json_schema, values) : problemOf(parameter, value);
  };
  const found = parameters
    .filter((parameter) => repeated.has(parameter.name) || isVisible(parameter, all))
    .map((parameter) => [parameter.name, problem(parameter)] as const)
    .filter(
      (entry): entry is [string, string] =>
        entry[1] !== null && !(entry[1] && isDefaulted(parameters, entry[0], values)),
    );
  const shown = found.filter(([name]) => touched.has(name) || repeated.has(name));
  return {
    parameters,
    values,
    set: (name, value) => {
      setValues((before) => ({ ...before, [name]: value }));
      setRefused(({ [name]: _dropped, ...rest }) => rest);
    },
    problems: { ...refused, ...Object.fromEntries(shown) },
    repeated,
    touched,
    touch: (name) => setTouched((before) => (before.has(name) ? before : new Set([...before, name]))),
    check: () => {
      setTouched(new Set(parameters.map(({ name }) => name)));
      return found.length === 0;
    },
    changed: () => changedValues(all, stored),
    refuse: setRefused,
  };
}

/** A new configuration begins with what its specification requires. */
const withFirstConfig = (parameters: readonly Parameter[], initial: ParameterValues): ParameterValues => {
  const { name, json_schema } = parameters.find((one) => one.json_schema !== null) ?? {};
  if (name === undefined || !json_schema || initial[name] !== undefined) return initial;
  return { ...initial, [name]: firstConfig(nodesOf(json_schema)) };
};

const specProblem = (json_schema: Record<string, unknown>, { config, secrets }: ParameterValues): string | null =>
  Object.values(specProblems(nodesOf(json_schema), { config, secrets }))[0] ?? null;

const storedSecrets = (parameters: readonly Parameter[], stored: ParameterValues): string[] =>
  parameters.filter(({ name, secret }) => secret && stored[name] === MASK).map(({ name }) => name);

/** No input, but a default. */
const isDefaulted = (parameters: readonly Parameter[], name: string, values: ParameterValues) =>
  values[name] === undefined &&
  parameters.some((one) => one.name === name && one.default !== undefined && one.default !== null);
