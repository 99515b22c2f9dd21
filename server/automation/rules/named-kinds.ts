import type { ASTNode } from '@marcbachmann/cel-js';

/** A kind of event that a rule names, and its offset. */
export interface NamedKind {
  kind: string;
  offset: number;
}

/** The kinds of event that a rule can match, derived from `event == "x"` and `event in [...]`. Null: any kind. */
export function namedKinds(ast: ASTNode): NamedKind[] | null {
  switch (ast.op) {
    case '&&':
      return both(namedKinds(ast.args[0]), namedKinds(ast.args[1]));
    case '||':
      return either(namedKinds(ast.args[0]), namedKinds(ast.args[1]));
    case '==':
      return isEvent(ast.args[0]) ? literals([ast.args[1]]) : isEvent(ast.args[1]) ? literals([ast.args[0]]) : null;
    case 'in':
      return isEvent(ast.args[0]) && ast.args[1].op === 'list' ? literals(ast.args[1].args) : null;
    case '?:':
      return either(both(namedKinds(ast.args[0]), namedKinds(ast.args[1])), namedKinds(ast.args[2]));
    case 'value':
      return ast.args === false ? [] : null;
    default:
      return null;
  }
}

const isEvent = (node: ASTNode) => node.op === 'id' && node.args === 'event';

function literals(nodes: readonly ASTNode[]): NamedKind[] | null {
  const named: NamedKind[] = [];
  for (const node of nodes) {
    if (node.op !== 'value' || typeof node.args !== 'string') return null;
    named.push({ kind: node.args, offset: node.start });
  }
  return named;
}

function both(left: NamedKind[] | null, right: NamedKind[] | null): NamedKind[] | null {
  if (!left || !right) return left ?? right;
  return left.filter((one) => right.some((other) => other.kind === one.kind));
}

const either = (left: NamedKind[] | null, right: NamedKind[] | null) => (left && right ? [...left, ...right] : null);
