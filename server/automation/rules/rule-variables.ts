import { VARIABLES, type VariableType } from '../../events/variables.ts';
import { identifierOf } from './normalize-source.ts';

const NAMES = Object.entries(VARIABLES).map(([name, type]) => ({ name, type, identifier: identifierOf(name) }));

/**
 * An event's facts in the types of the rule language: integers as BigInt, decimals as numbers, missing ones as null. A
 * value of the wrong type stays as it is, so that the rule fails on it.
 */
export function ruleVariables(facts: Record<string, unknown>): Record<string, unknown> {
  const variables: Record<string, unknown> = Object.create(null);
  for (const { name, type, identifier } of NAMES) {
    variables[identifier] = Object.hasOwn(facts, name) ? convert(facts[name], type) : null;
  }
  return variables;
}

function convert(value: unknown, type: VariableType): unknown {
  if (value === undefined || value === null) return null;
  if (type === 'int' && typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value);
  return value;
}
