import { parse, tokenize } from '@huggingface/jinja';
import { FILTERS } from './jinja-filters.ts';
import { isOperator } from './jinja-operators.ts';

/** The supported nodes of a template. Others are rejected. */
export type Node =
  | { type: 'StringLiteral'; value: string }
  | { type: 'IntegerLiteral' | 'FloatLiteral'; value: number }
  | { type: 'ArrayLiteral' | 'TupleLiteral'; value: Node[] }
  | { type: 'ObjectLiteral'; value: Map<Node, Node> }
  | { type: 'Identifier'; value: string }
  | { type: 'MemberExpression'; object: Node; property: Node; computed: boolean }
  | { type: 'SliceExpression'; start?: Node; stop?: Node; step?: Node }
  | CallNode
  | { type: 'KeywordArgumentExpression'; key: { value: string }; value: Node }
  | { type: 'FilterExpression'; operand: Node; filter: { type: 'Identifier'; value: string } | CallNode }
  | { type: 'TestExpression'; operand: Node; negate: boolean; test: { value?: string } }
  | { type: 'SelectExpression'; lhs: Node; test: Node }
  | { type: 'Ternary'; condition: Node; trueExpr: Node; falseExpr: Node }
  | { type: 'BinaryExpression'; operator: { value: string }; left: Node; right: Node }
  | { type: 'UnaryExpression'; operator: { value: string }; argument: Node }
  | { type: 'If'; test: Node; body: Node[]; alternate: Node[] }
  | { type: 'For'; loopvar: Node; iterable: Node; body: Node[]; defaultBlock: Node[] }
  | { type: 'Set'; assignee: Node; value: Node | null; body: Node[] }
  | { type: 'Comment' };
export interface CallNode {
  type: 'CallExpression';
  callee: Node;
  args: Node[];
}

export const TESTS = new Set([
  'defined',
  'undefined',
  'none',
  'string',
  'number',
  'integer',
  'float',
  'boolean',
  'mapping',
  'sequence',
  'iterable',
  'true',
  'false',
  'odd',
  'even',
]);
const KINDS = new Set(
  (
    'StringLiteral IntegerLiteral FloatLiteral ArrayLiteral TupleLiteral ObjectLiteral Identifier MemberExpression ' +
    'SliceExpression CallExpression KeywordArgumentExpression FilterExpression TestExpression SelectExpression ' +
    'Ternary BinaryExpression UnaryExpression If For Set Comment'
  ).split(' '),
);
const MAX_TEMPLATE_LENGTH = 20_000;
const TAG = /\{\{[\s\S]*?\}\}|\{%[\s\S]*?%\}/g;

const NUMBER = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\b\d+(?:_\d+)+\b/g;

/** As in Python: `1_000` is a number, and a colon may end a statement, as in `{% for a in b: %}`. */
const asInPython = (text: string) =>
  text.replaceAll(TAG, (tag) =>
    tag
      .replaceAll(NUMBER, (found) => (/^\d/.test(found) ? found.replaceAll('_', '') : found))
      .replace(/^(\{%-?\s*(?:if|elif|else|for)\b[\s\S]*?):\s*(-?%\})$/, '$1 $2'),
  );

/** Python keeps the backslash of an unknown escape, which the parser rejects. */
const withEscapes = (text: string) =>
  text.replaceAll(TAG, (tag) =>
    tag.replaceAll(/\\([\s\S])/g, (pair, char: string) => (/[nrtbfv'"\\]/.test(char) ? pair : `\\\\${char}`)),
  );

const RAW = /\{%[-+]?\s*raw\s*[-+]?%\}([\s\S]*?)\{%[-+]?\s*endraw\s*[-+]?%\}/g;
const RAW_NAME = '__raw_';

/** The parser does not know raw blocks: a name stands for each until the template is parsed. */
function withoutRaw(text: string): { text: string; raw: string[] } {
  const raw: string[] = [];
  return { text: text.replaceAll(RAW, (_, block: string) => `{{ ${RAW_NAME}${raw.push(block) - 1} }}`), raw };
}

function putRawBack(nodes: Node[], raw: readonly string[]): Node[] {
  if (raw.length === 0) return nodes;
  visitNodes(nodes, (node) => {
    if (node.type !== 'Identifier' || !node.value.startsWith(RAW_NAME)) return;
    const block = raw[Number(node.value.slice(RAW_NAME.length))];
    if (block !== undefined) Object.assign(node, { type: 'StringLiteral', value: block });
  });
  return nodes;
}

/** The nodes of a template. @throws Error when it cannot be parsed */
export function parseTemplate(text: string): Node[] {
  if (text.length > MAX_TEMPLATE_LENGTH) throw new Error(`it is longer than ${MAX_TEMPLATE_LENGTH} characters`);
  // As in Jinja, a final line break is dropped.
  const { text: plain, raw } = withoutRaw(text);
  const source = withEscapes(asInPython(plain)).replace(/\n$/, '');
  try {
    const options = { lstrip_blocks: false, trim_blocks: false };
    return putRawBack(parse(tokenize(source, options)).body as unknown as Node[], raw);
  } catch (error) {
    if (error instanceof RangeError) throw new Error('it is nested too deeply', { cause: error });
    throw error;
  }
}

/** Visits every node of a tree. @throws RangeError when it is nested too deeply */
export function visitNodes(nodes: unknown, visit: (node: Node) => void): void {
  if (Array.isArray(nodes)) for (const node of nodes) visitNodes(node, visit);
  else if (nodes instanceof Map) for (const [key, value] of nodes) visitNodes([key, value], visit);
  else if (typeof nodes === 'object' && nodes !== null) {
    if (typeof (nodes as Node).type === 'string' && /^[A-Z]/.test((nodes as Node).type)) visit(nodes as Node);
    for (const [name, child] of Object.entries(nodes)) if (name !== 'operator') visitNodes(child, visit);
  }
}

/** What a template uses that is not supported: node types, filters, tests, operators, names. */
export function problemsOf(nodes: Node[], known: (name: string) => boolean): string[] {
  const problems = new Set<string>();
  const names = new Set<string>(['loop']);
  const plain = new Set<unknown>();
  visitNodes(nodes, (node) => {
    if (node.type === 'Set' || node.type === 'For') {
      visitNodes(node.type === 'Set' ? node.assignee : node.loopvar, (target) => {
        if (target.type === 'Identifier') names.add(target.value);
      });
    }
    if (node.type === 'MemberExpression' && !node.computed) plain.add(node.property);
    if (node.type === 'FilterExpression')
      plain.add(node.filter.type === 'Identifier' ? node.filter : node.filter.callee);
    if (node.type === 'TestExpression') plain.add(node.test);
    if (node.type === 'KeywordArgumentExpression') plain.add(node.key);
  });
  visitNodes(nodes, (node) => {
    if (!KINDS.has(node.type)) problems.add(`${node.type} is not supported`);
    if (node.type === 'FilterExpression') {
      const filter =
        node.filter.type === 'Identifier' ? node.filter.value : (node.filter.callee as { value: string }).value;
      if (!Object.hasOwn(FILTERS, filter)) problems.add(`unknown filter "${filter}"`);
    }
    if (node.type === 'TestExpression' && !TESTS.has(node.test.value ?? ''))
      problems.add(`unknown test "${node.test.value ?? ''}"`);
    if (node.type === 'BinaryExpression' && !isOperator(node.operator.value))
      problems.add(`unknown operator ${node.operator.value}`);
    if (node.type === 'Identifier' && !plain.has(node) && !names.has(node.value) && !known(node.value)) {
      problems.add(`unknown variable or function "${node.value}"`);
    }
  });
  return [...problems];
}
