import type { ASTNode } from '@marcbachmann/cel-js';
import type { RuleErrorCode } from './errors.ts';
import { FUNCTIONS } from './language.ts';
import { compilePattern, MAX_PATTERN_LENGTH } from './regex.ts';
import { variableOf } from './normalize-source.ts';

/** The variables and functions of a rule, in order of appearance. */
export interface RuleParts {
  variables: string[];
  functions: string[];
}

/** An error at a node. Its offset refers to the normalized text. */
export class NodeError extends Error {
  constructor(
    readonly code: RuleErrorCode,
    message: string,
    readonly offset: number,
  ) {
    super(message);
  }
}

const OPERATORS = new Set(['==', '!=', '<', '<=', '>', '>=', 'in', '+', '-', '*', '/', '%', '&&', '||']);

/** Walks a parsed rule and rejects everything outside the rule language. @throws NodeError */
export function inspect(ast: ASTNode): RuleParts {
  const variables = new Set<string>();
  const functions = new Set<string>();
  const visit = (node: ASTNode): void => {
    if (node.op === 'id') variables.add(variableOf(node.args));
    if (node.op === 'call' || node.op === 'rcall') functions.add(checkCall(node));
    for (const child of childrenOf(node)) visit(child);
  };
  visit(ast);
  return { variables: [...variables], functions: [...functions] };
}

function childrenOf(node: ASTNode): readonly ASTNode[] {
  switch (node.op) {
    case 'id':
      return [];
    case 'value':
      if (node.args instanceof Uint8Array) throw refuse(node, 'Bytes');
      return [];
    case 'call':
      return node.args[1];
    case 'rcall':
      return [node.args[1], ...node.args[2]];
    case '!_':
    case '-_':
      return [node.args];
    case 'list':
    case '?:':
      return node.args;
    default:
      if (OPERATORS.has(node.op)) return node.args as [ASTNode, ASTNode];
      throw refuse(node, node.op === 'map' ? 'Maps' : 'Access to fields and elements');
  }
}

const refuse = (node: ASTNode, what: string) =>
  new NodeError('parse_error', `${what} are not part of the rule language`, node.start);

function checkCall(node: ASTNode & { op: 'call' | 'rcall' }): string {
  const name = node.args[0];
  if (!FUNCTIONS.has(name)) {
    const hint = name === 'matches' ? '; use regex_matches(text, "pattern")' : '';
    throw new NodeError('function_not_allowed', `The function ${name} is not allowed${hint}`, nameOffset(node, name));
  }
  if (name === 'regex_matches') checkPattern(node);
  return name;
}

/** `node.start` of a method call is the start of its receiver. */
function nameOffset(node: ASTNode & { op: 'call' | 'rcall' }, name: string): number {
  if (node.op === 'call') return node.start;
  const found = node.input.indexOf(name, node.args[1].end);
  return found < 0 ? node.start : found;
}

function checkPattern(node: ASTNode & { op: 'call' | 'rcall' }): void {
  const pattern = node.op === 'call' ? node.args[1][1] : undefined;
  if (pattern === undefined) return;
  if (pattern.op !== 'value' || typeof pattern.args !== 'string') {
    throw new NodeError('type_error', 'The pattern of regex_matches must be a string literal', pattern.start);
  }
  if (pattern.args.length > MAX_PATTERN_LENGTH) {
    throw new NodeError('limit_exceeded', `A pattern can have at most ${MAX_PATTERN_LENGTH} characters`, pattern.start);
  }
  try {
    compilePattern(pattern.args);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new NodeError(/too large/.test(message) ? 'limit_exceeded' : 'parse_error', message, pattern.start);
  }
}
