import { VARIABLES, type VariableType } from '../../events/variables.ts';
import { identifierOf } from './source.ts';

const NAMES = Object.entries(VARIABLES).map(([name, type]) => ({ name, type, identifier: identifierOf(name) }));

/**
 * An event's facts as the language wants them: integers as BigInt, decimals as numbers, absent ones as null. A value of
 * another type than declared stays as it is, for the rule to fail on.
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
