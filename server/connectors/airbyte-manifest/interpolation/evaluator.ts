import { sliced } from './slice.ts';
import { pyText } from './python-literal.ts';
import { isNamespace } from './macros.ts';
import { FILTERS } from './jinja-filters.ts';
import { isFloat, pyFloat } from './python-number.ts';
import { attributeOf } from './python-methods.ts';
import type { CallNode, Node } from './template-nodes.ts';
import { operate } from './jinja-operators.ts';
import { passesTest } from './jinja-tests.ts';
import {
  bounded,
  type Callable,
  isMapping,
  itemsOf,
  MAX_STEPS,
  type Named,
  numberArgument,
  numberOf,
  spendOn,
  TemplateError,
  truthy,
  typeName,
  UndefinedError,
} from './values.ts';

const CONSTANTS: Record<string, unknown> = {
  true: true,
  false: false,
  none: null,
  True: true,
  False: false,
  None: null,
};

/** Evaluates a template. It has access to the given scope and functions, and to nothing else. */
export class Evaluator {
  #steps = 0;
  readonly #locals = new Map<string, unknown>();

  constructor(
    private readonly scope: Readonly<Record<string, unknown>>,
    private readonly functions: Readonly<Record<string, Callable>>,
  ) {}

  /** The concatenated text of the nodes. */
  render(nodes: readonly Node[]): string {
    let out = '';
    for (const node of nodes) out = bounded(out + this.#part(node));
    return out;
  }

  #part(node: Node): string {
    if (node.type === 'If') return this.render(truthy(this.value(node.test)) ? node.body : node.alternate);
    if (node.type === 'For') return this.#loop(node);
    if (node.type === 'Set') return this.#set(node);
    return node.type === 'Comment' ? '' : pyText(this.value(node));
  }

  #set({ assignee, value, body }: Extract<Node, { type: 'Set' }>): string {
    this.#assign(assignee, value === null ? this.render(body) : this.value(value));
    return '';
  }

  #assign(target: Node, value: unknown): void {
    if (target.type === 'Identifier') this.#locals.set(target.value, value);
    else if (target.type === 'TupleLiteral') {
      const items = itemsOf(value);
      for (const [at, part] of target.value.entries()) this.#assign(part, items[at]);
    } else if (target.type === 'MemberExpression' && !target.computed) {
      const owner = this.value(target.object);
      if (!isNamespace(owner)) throw new TemplateError('only attributes of a namespace can be assigned');
      owner[(target.property as { value: string }).value] = value;
    } else throw new TemplateError('only a name can be assigned');
  }

  #loop({ loopvar, iterable, body, defaultBlock }: Extract<Node, { type: 'For' }>): string {
    const items = itemsOf(this.value(iterable.type === 'SelectExpression' ? iterable.lhs : iterable));
    let out = '';
    let turns = 0;
    for (const [index, item] of items.entries()) {
      this.#step();
      this.#assign(loopvar, item);
      if (iterable.type === 'SelectExpression' && !truthy(this.value(iterable.test))) continue;
      const loop = {
        index: turns + 1,
        index0: turns,
        first: turns === 0,
        last: index === items.length - 1,
        length: items.length,
      };
      this.#locals.set('loop', loop);
      turns += 1;
      out = bounded(out + this.render(body));
    }
    return turns === 0 ? this.render(defaultBlock) : out;
  }

  #step(): void {
    this.#steps += 1;
    if (this.#steps > MAX_STEPS) throw new TemplateError(`the template takes more than ${MAX_STEPS} steps`);
  }

  /** The value of an expression; undefined when its variable does not exist. */
  value(node: Node): unknown {
    this.#step();
    switch (node.type) {
      case 'StringLiteral':
      case 'IntegerLiteral':
        return node.value;
      case 'FloatLiteral':
        return pyFloat(node.value);
      case 'ArrayLiteral':
      case 'TupleLiteral':
        return node.value.map((item) => this.value(item));
      case 'ObjectLiteral':
        return Object.fromEntries(Array.from(node.value, ([key, item]) => [pyText(this.value(key)), this.value(item)]));
      case 'Identifier':
        return this.#name(node.value);
      case 'MemberExpression':
        return this.#member(node);
      case 'CallExpression':
        return this.#call(node);
      case 'FilterExpression':
        return this.#filter(node);
      case 'TestExpression':
        return passesTest(node.test.value ?? '', this.value(node.operand)) !== node.negate;
      case 'SelectExpression':
        return truthy(this.value(node.test)) ? this.value(node.lhs) : undefined;
      case 'Ternary':
        return this.value(truthy(this.value(node.condition)) ? node.trueExpr : node.falseExpr);
      case 'BinaryExpression':
        return this.#binary(node);
      case 'UnaryExpression':
        return this.#unary(node);
      default:
        throw new TemplateError(`${node.type} is not an expression`);
    }
  }

  #name(name: string): unknown {
    if (this.#locals.has(name)) return this.#locals.get(name);
    if (Object.hasOwn(this.scope, name)) return this.scope[name];
    if (Object.hasOwn(CONSTANTS, name)) return CONSTANTS[name];
    return Object.hasOwn(this.functions, name) ? this.functions[name] : undefined;
  }

  #binary({ operator, left, right }: Extract<Node, { type: 'BinaryExpression' }>): unknown {
    const a = this.value(left);
    // `1 <= x <= 9`: the parser sees the first comparison as the left side of the second.
    if (isComparison(operator.value) && left.type === 'BinaryExpression' && isComparison(left.operator.value))
      return truthy(a) ? operate(operator.value, this.value(left.right), this.value(right)) : false;
    if (operator.value === 'and') return truthy(a) ? this.value(right) : a;
    if (operator.value === 'or') return truthy(a) ? a : this.value(right);
    return operate(operator.value, a, this.value(right));
  }

  #unary({ operator, argument }: Extract<Node, { type: 'UnaryExpression' }>): unknown {
    const value = this.value(argument);
    if (operator.value === 'not') return !truthy(value);
    const number = operator.value === '-' ? -numberArgument(value) : numberArgument(value);
    return isFloat(value) ? pyFloat(number) : number + 0;
  }

  #member({ object, property, computed }: Extract<Node, { type: 'MemberExpression' }>): unknown {
    const whole = this.value(object);
    if (whole === undefined) throw new UndefinedError('a member of an undefined value is used');
    if (property.type === 'SliceExpression') return this.#slice(whole, property);
    const key = computed ? this.value(property) : (property as { value: string }).value;
    const methodFirst = !computed && !(isMapping(whole) && !METHODS.has(String(key)));
    const method = methodFirst ? attributeOf(whole, String(key)) : undefined;
    if (typeof method === 'function') spendOn([whole]);
    if (method !== undefined) return method;
    const entry = entryOf(whole, key);
    return entry === undefined ? attributeOf(whole, String(key)) : entry;
  }

  #slice(whole: unknown, { start, stop, step }: Extract<Node, { type: 'SliceExpression' }>): unknown {
    const text = typeof whole === 'string';
    spendOn([whole]);
    const items = text ? Array.from(whole) : itemsOf(whole);
    const bound = (node: Node | undefined) => {
      const given = node ? this.value(node) : null;
      return given === null ? null : numberArgument(given);
    };
    const taken = sliced(items, { start: bound(start), stop: bound(stop), step: bound(step) ?? 1 });
    return text ? taken.join('') : taken;
  }

  #call({ callee, args }: CallNode): unknown {
    const called = this.value(callee);
    if (called === undefined) throw new UndefinedError('an undefined function is called');
    if (typeof called !== 'function') throw new TemplateError(`${typeName(called)} cannot be called`);
    const { positional, named } = this.#arguments(args);
    spendOn(positional);
    return bounded((called as Callable)(positional, named));
  }

  #filter({ operand, filter }: Extract<Node, { type: 'FilterExpression' }>): unknown {
    const called = filter.type === 'Identifier' ? filter : (filter.callee as { value: string });
    const apply = Object.hasOwn(FILTERS, called.value) ? FILTERS[called.value] : undefined;
    if (!apply) throw new TemplateError(`unknown filter "${called.value}"`);
    const { positional, named } = this.#arguments(filter.type === 'Identifier' ? [] : filter.args);
    // `x.y.z | default(…)`: the filter is for undefined values, so they are no error here.
    const lenient = called.value === 'default' || called.value === 'd';
    const value = lenient ? this.#orUndefined(operand) : this.value(operand);
    spendOn([value, ...positional]);
    return bounded(apply([value, ...positional], named));
  }

  #orUndefined(node: Node): unknown {
    try {
      return this.value(node);
    } catch (error) {
      if (error instanceof UndefinedError) return undefined;
      throw error;
    }
  }

  #arguments(args: readonly Node[]): { positional: unknown[]; named: Named } {
    const positional: unknown[] = [];
    const named = Object.create(null) as Named;
    for (const argument of args) {
      if (argument.type === 'KeywordArgumentExpression') named[argument.key.value] = this.value(argument.value);
      else positional.push(this.value(argument));
    }
    return { positional, named };
  }
}

const isComparison = (operator: string) => /^([<>]=?|==|!=)$/.test(operator);

/** As in Jinja, `a.get` is the method even when the mapping has an entry of that name. */
const METHODS = new Set(['get', 'items', 'keys', 'values']);

function entryOf(whole: unknown, key: unknown): unknown {
  if (Array.isArray(whole) || typeof whole === 'string') {
    const at = numberOf(key);
    return at === null ? undefined : whole.at(at);
  }
  if (!isMapping(whole)) return undefined;
  const name = pyText(key);
  return Object.hasOwn(whole, name) ? whole[name] : undefined;
}
