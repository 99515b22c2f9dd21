import { compile, TreeInterpreter } from '@jmespath-community/jmespath';

/** Selects a part of a parsed response; null when it is absent. */
export type Selector = (json: unknown) => unknown;

type Expression = ReturnType<typeof compile>;
type Value = Parameters<typeof TreeInterpreter.search>[1];

const PLAIN = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/;

/** A compiled JMESPath expression, or what is wrong with it. Numbers kept as raw JSON pass through unchanged. */
export function compileSelector(text: string): { select: Selector; problem: null } | { select: null; problem: string } {
  if (text === '@') return { select: (json) => json, problem: null };
  if (PLAIN.test(text)) return { select: pathSelector(text.split('.')), problem: null };
  let expression: Expression;
  try {
    expression = compile(text);
  } catch (error) {
    return { select: null, problem: error instanceof Error ? error.message : String(error) };
  }
  return { select: (json) => TreeInterpreter.search(expression, json as Value) ?? null, problem: null };
}

/** Most expressions are plain paths, which need no interpreter. */
const pathSelector =
  (path: string[]): Selector =>
  (json) => {
    let value = json;
    for (const part of path) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
      value = (value as Record<string, unknown>)[part] ?? null;
    }
    return value;
  };

/** The selector for an expression that has passed validation. */
export function selectorOf(text: string): Selector {
  const { select, problem } = compileSelector(text);
  if (!select) throw new Error(problem);
  return select;
}
