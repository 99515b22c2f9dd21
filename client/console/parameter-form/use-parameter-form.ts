import { useState } from 'react';
import { changedValues, isVisible, type Parameter, problemOf, type Values } from './parameter-values.ts';

export interface ParameterFormState {
  parameters: readonly Parameter[];
  values: Values;
  set(name: string, value: unknown): void;
  /** By name: what is wrong with a field that was left, or with any after `check`. */
  problems: Record<string, string>;
  touch(name: string): void;
  /** Shows every problem from now on. True: there is none. */
  check(): boolean;
  /** What the service would be told. */
  changed(): Record<string, unknown>;
  /** Problems that the service found, by name; each is forgotten when its field is changed. */
  refuse(problems: Record<string, string>): void;
}

/** The state of a form for a connector's parameters. `stored`: what they are now; secrets masked. */
export function useParameterForm(parameters: readonly Parameter[], stored: Values = {}): ParameterFormState {
  const [values, setValues] = useState<Values>(stored);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [refused, setRefused] = useState<Record<string, string>>({});
  const all = { parameters, values };
  const found = parameters
    .filter((parameter) => isVisible(parameter, all))
    .map((parameter) => [parameter.name, problemOf(parameter, values[parameter.name])] as const)
    .filter(
      (entry): entry is [string, string] =>
        entry[1] !== null && !(entry[1] && isDefaulted(parameters, entry[0], values)),
    );
  const shown = found.filter(([name]) => touched.has(name));
  return {
    parameters,
    values,
    set: (name, value) => {
      setValues((before) => ({ ...before, [name]: value }));
      setRefused(({ [name]: _settled, ...rest }) => rest);
    },
    problems: { ...refused, ...Object.fromEntries(shown) },
    touch: (name) => setTouched((before) => (before.has(name) ? before : new Set([...before, name]))),
    check: () => {
      setTouched(new Set(parameters.map(({ name }) => name)));
      return found.length === 0;
    },
    changed: () => changedValues(all, stored),
    refuse: setRefused,
  };
}

/** Nothing is typed, but there is a default. */
const isDefaulted = (parameters: readonly Parameter[], name: string, values: Values) =>
  values[name] === undefined &&
  parameters.some((one) => one.name === name && one.default !== undefined && one.default !== null);
