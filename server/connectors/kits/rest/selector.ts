import { compile, TreeInterpreter } from '@jmespath-community/jmespath';

/** Picks a part of a parsed answer; null when there is none. */
export type Selector = (answer: unknown) => unknown;

type Expression = ReturnType<typeof compile>;
type Value = Parameters<typeof TreeInterpreter.search>[1];

const PLAIN = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/;

/** A JMESPath expression made ready once, or what is wrong with it. Numbers kept as raw JSON pass through untouched. */
export function compileSelector(text: string): { select: Selector; problem: null } | { select: null; problem: string } {
  if (text === '@') return { select: (answer) => answer, problem: null };
  if (PLAIN.test(text)) return { select: pathSelector(text.split('.')), problem: null };
  let expression: Expression;
  try {
    expression = compile(text);
  } catch (error) {
    return { select: null, problem: error instanceof Error ? error.message : String(error) };
  }
  return { select: (answer) => TreeInterpreter.search(expression, answer as Value) ?? null, problem: null };
}

/** By far the most expressions are nothing but a path. */
const pathSelector =
  (path: string[]): Selector =>
  (answer) => {
    let value = answer;
    for (const part of path) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
      value = (value as Record<string, unknown>)[part] ?? null;
    }
    return value;
  };

/** The selector of an expression that was checked before. */
export function selectorOf(text: string): Selector {
  const { select, problem } = compileSelector(text);
  if (!select) throw new Error(problem);
  return select;
}
