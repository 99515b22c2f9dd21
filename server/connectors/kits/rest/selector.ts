import { compile, TreeInterpreter } from '@jmespath-community/jmespath';

/** Selects a part of a parsed response; null or undefined when it is absent. */
export type Selector = (json: unknown) => unknown;

type Expression = ReturnType<typeof compile>;
type Value = Parameters<typeof TreeInterpreter.search>[1];

/** Maximum nodes that one search visits, which bounds its time to about a second. */
const MAX_VISITS = 5_000_000;
const MAX_MS = 5_000;

/**
 * The library has no limits: an expression nested four deep visits the fourth power of a list. Its interpreter creates
 * others within a search, so that only their prototype sees all visits.
 */
const interpreter = Object.getPrototypeOf(TreeInterpreter) as typeof TreeInterpreter;
const visit = interpreter.visit;
let visits = 0;
let started = 0;
interpreter.visit = function (node, value) {
  visits += 1;
  // A function may go through a whole list, so that the number of visits does not tell its time.
  const isSlow = node.type === 'Function' && performance.now() - started > MAX_MS;
  if (visits > MAX_VISITS || isSlow) {
    throw new Error('the expression does too much work. Simplify it, or request smaller pages');
  }
  return visit.call(this, node, value);
};

function search(expression: Expression, json: unknown): unknown {
  visits = 0;
  started = performance.now();
  return TreeInterpreter.search(expression, json as Value);
}

const PLAIN = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/;

/** The names of an expression that is only a path; null for any other. */
export const plainPath = (text: string): string[] | null => (PLAIN.test(text) ? text.split('.') : null);

/** A compiled JMESPath expression, or what is wrong with it. Numbers kept as raw JSON pass through unchanged. */
export function compileSelector(text: string): { select: Selector; problem: null } | { select: null; problem: string } {
  if (text === '@') return { select: (json) => json, problem: null };
  const path = plainPath(text);
  if (path) return { select: pathSelector(path), problem: null };
  let expression: Expression;
  try {
    expression = compile(text);
  } catch (error) {
    return { select: null, problem: error instanceof Error ? error.message : String(error) };
  }
  return { select: (json) => search(expression, json) ?? undefined, problem: null };
}

/** Most expressions are plain paths, which need no interpreter. They tell null from what does not exist. */
const pathSelector =
  (path: string[]): Selector =>
  (json) => {
    let value = json;
    for (const part of path) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
      value = Object.hasOwn(value, part) ? (value as Record<string, unknown>)[part] : undefined;
    }
    return value;
  };

/** The selector for an expression that has passed validation. */
export function selectorOf(text: string): Selector {
  const { select, problem } = compileSelector(text);
  if (!select) throw new Error(problem);
  return select;
}
