import { calculate, isFloat } from './python-number.ts';
import { pyText } from './python-literal.ts';
import { PyDuration, PyTime } from './python-time.ts';
import {
  bounded,
  compare,
  contains,
  equal,
  MAX_LENGTH,
  MismatchError,
  numberArgument,
  numberOf,
  TemplateError,
  typeName,
  UndefinedError,
} from './values.ts';

type Operator = (a: unknown, b: unknown) => unknown;

const OPERATORS: Record<string, Operator> = {
  '==': equal,
  '!=': (a, b) => !equal(a, b),
  '<': (a, b) => compare(a, b) < 0,
  '<=': (a, b) => compare(a, b) <= 0,
  '>': (a, b) => compare(a, b) > 0,
  '>=': (a, b) => compare(a, b) >= 0,
  in: (a, b) => contains(b, a),
  'not in': (a, b) => !contains(b, a),
  '~': (a, b) => bounded(pyText(a) + pyText(b)),
  '+': plus,
  '-': minus,
  '*': times,
  '/': (a, b) => numbers('/', a, b),
  '//': (a, b) => numbers('//', a, b),
  '%': (a, b) => (typeof a === 'string' ? formatted(a, b) : numbers('%', a, b)),
  '**': (a, b) => numbers('**', a, b),
};

export const isOperator = (name: string): boolean => name in OPERATORS || name === 'and' || name === 'or';

/** @throws TemplateError when the operator does not apply to the values */
export function operate(name: string, a: unknown, b: unknown): unknown {
  const operator = OPERATORS[name];
  if (!operator) throw new TemplateError(`unknown operator ${name}`);
  return operator(a, b);
}

function plus(a: unknown, b: unknown): unknown {
  needed(a, b);
  if (typeof a === 'string' && typeof b === 'string') return bounded(a + b);
  if (Array.isArray(a) && Array.isArray(b)) return bounded([...a, ...b]);
  if (a instanceof PyTime && b instanceof PyDuration) return a.plus(b, 1);
  if (a instanceof PyDuration && b instanceof PyTime) return b.plus(a, 1);
  if (a instanceof PyDuration && b instanceof PyDuration)
    return new PyDuration(a.micros + b.micros, a.months + b.months);
  return numbers('+', a, b);
}

function minus(a: unknown, b: unknown): unknown {
  needed(a, b);
  if (a instanceof PyTime && b instanceof PyDuration) return a.plus(b, -1);
  if (a instanceof PyTime && b instanceof PyTime) return new PyDuration(a.micros - b.micros);
  if (a instanceof PyDuration && b instanceof PyDuration)
    return new PyDuration(a.micros - b.micros, a.months - b.months);
  return numbers('-', a, b);
}

function times(a: unknown, b: unknown): unknown {
  needed(a, b);
  if (typeof a === 'string' || Array.isArray(a)) {
    const count = Math.max(0, numberArgument(b));
    if (count * a.length > MAX_LENGTH)
      throw new TemplateError(`the result has more than ${MAX_LENGTH} characters or items`);
    return typeof a === 'string' ? a.repeat(count) : Array.from({ length: count }, () => a).flat();
  }
  if (typeof b === 'string' || Array.isArray(b)) return times(b, a);
  if (a instanceof PyDuration) return new PyDuration(a.micros * numberArgument(b), a.months * numberArgument(b));
  return numbers('*', a, b);
}

/** `'%s' % value` of Python. */
function formatted(a: string, b: unknown): string {
  const values = Array.isArray(b) ? b : [b];
  let at = 0;
  return bounded(
    a.replaceAll(/%(?:0?(\d{1,3}))?([sd%])/g, (_, width: string | undefined, kind: string) => {
      if (kind === '%') return '%';
      const text = kind === 'd' ? String(Math.trunc(numberArgument(values[at]))) : pyText(values[at]);
      at += 1;
      return width === undefined ? text : text.padStart(Number(width), kind === 'd' ? '0' : ' ');
    }),
  );
}

function needed(a: unknown, b: unknown): void {
  if (a === undefined || b === undefined) throw new UndefinedError('an undefined value is an operand');
}

function numbers(name: string, a: unknown, b: unknown): unknown {
  needed(a, b);
  const [x, y] = [numberOf(a), numberOf(b)];
  if (x === null || y === null) throw new MismatchError(`${name} does not apply to ${typeName(a)} and ${typeName(b)}`);
  return calculate(name, { x, y, float: isFloat(a) || isFloat(b) });
}
