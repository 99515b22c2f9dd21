import { digitsOf } from '../../cells/json-cells.ts';
import { pyText } from './python-literal.ts';
import { PyDuration, PyTime } from './python-time.ts';
import { MismatchError, TemplateError } from './template-error.ts';

export { MismatchError, TemplateError };

/** An undefined value was used: the template then has no value. */
export class UndefinedError extends Error {}

export type Named = Record<string, unknown>;
/** A macro, filter or method. */
export type Callable = (args: unknown[], named: Named) => unknown;

/** Maximum length of a text or list that a template creates. */
export const MAX_LENGTH = 1_000_000;
/** Maximum steps of one evaluation. */
export const MAX_STEPS = 100_000;

/** Maximum work of one evaluation: characters and items that its filters, functions and comparisons go through. */
const MAX_WORK = 20_000_000;

let work = 0;

/** Before an evaluation. Evaluations do not overlap: they never wait. */
export function resetWork(): void {
  work = 0;
}

/** Counts work of the evaluation. @throws TemplateError */
export function spend(units: number): void {
  work += units;
  if (work > MAX_WORK) throw new TemplateError('the template does too much work');
}

const sizeOf = (value: unknown): number =>
  typeof value === 'string' || Array.isArray(value) ? value.length : isMapping(value) ? Object.keys(value).length : 1;

export const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof PyTime) &&
  !(value instanceof PyDuration) &&
  digitsOf(value) === null;

/** The number, also when its digits are kept as raw JSON; null for anything else. */
export function numberOf(value: unknown): number | null {
  if (typeof value === 'boolean') return Number(value);
  const digits = digitsOf(value);
  return digits === null ? null : Number(digits);
}

export function truthy(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (isMapping(value)) return Object.keys(value).length > 0;
  const number = numberOf(value);
  return number === null ? Boolean(value) : number !== 0;
}

export function equal(a: unknown, b: unknown): boolean {
  spend(4);
  const [x, y] = [numberOf(a), numberOf(b)];
  if (x !== null || y !== null) return x === y && (Number.isSafeInteger(x) || pyText(a) === pyText(b) || x === y);
  if (a instanceof PyTime && b instanceof PyTime) return a.micros === b.micros;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, at) => equal(item, b[at]));
  if (isMapping(a) && isMapping(b)) {
    const names = Object.keys(a);
    return (
      names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && equal(a[name], b[name]))
    );
  }
  return a === b;
}

/** @throws TemplateError when the values cannot be ordered */
export function compare(a: unknown, b: unknown): number {
  spend(4);
  if (a === undefined || b === undefined) throw new UndefinedError('an undefined value is compared');
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : Number(a > b);
  if (a instanceof PyTime && b instanceof PyTime) return Math.sign(a.micros - b.micros);
  if (a instanceof PyDuration && b instanceof PyDuration) return Math.sign(a.micros - b.micros);
  const [x, y] = [numberOf(a), numberOf(b)];
  if (x !== null && y !== null) return Math.sign(x - y);
  if (Array.isArray(a) && Array.isArray(b)) {
    const at = a.findIndex((item, index) => index >= b.length || !equal(item, b[index]));
    if (at < 0) return a.length - b.length;
    return at >= b.length ? 1 : compare(a[at], b[at]);
  }
  throw new MismatchError(`${typeName(a)} and ${typeName(b)} cannot be compared`);
}

export function typeName(value: unknown): string {
  if (value === null || value === undefined) return 'no value';
  if (value instanceof PyTime) return 'a time';
  if (value instanceof PyDuration) return 'a duration';
  if (Array.isArray(value)) return 'a list';
  if (numberOf(value) !== null) return typeof value === 'boolean' ? 'a boolean' : 'a number';
  return typeof value === 'string' ? 'a text' : 'a mapping';
}

export function contains(whole: unknown, part: unknown): boolean {
  if (whole === undefined) throw new UndefinedError('an undefined value is searched');
  if (typeof whole === 'string' && typeof part === 'string') return whole.includes(part);
  if (Array.isArray(whole)) return whole.some((item) => equal(item, part));
  if (isMapping(whole)) return Object.hasOwn(whole, pyText(part));
  throw new MismatchError(`${typeName(whole)} cannot be searched`);
}

/** The items of a list, the names of a mapping, or the characters of a text. */
export function itemsOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  if (value === undefined) return [];
  if (typeof value === 'string') return Array.from(value);
  if (isMapping(value)) return Object.keys(value);
  throw new MismatchError(`${typeName(value)} has no items`);
}

/** Counts the operands of a filter or function as work. */
export function spendOn(operands: readonly unknown[]): void {
  for (const operand of operands) spend(sizeOf(operand));
}

/** Limits the size of texts and lists. */
export function bounded<Value>(value: Value): Value {
  spend(sizeOf(value));
  if ((typeof value === 'string' || Array.isArray(value)) && value.length > MAX_LENGTH) {
    throw new TemplateError(`the result has more than ${MAX_LENGTH} characters or items`);
  }
  return value;
}

/** An argument that must be text. */
export function textArgument(value: unknown): string {
  if (value === undefined) throw new UndefinedError('an undefined value is used as text');
  if (typeof value !== 'string') throw new MismatchError(`expected a text, not ${typeName(value)}`);
  return value;
}

export function numberArgument(value: unknown, otherwise?: number): number {
  if (value === undefined && otherwise !== undefined) return otherwise;
  if (value === undefined) throw new UndefinedError('an undefined value is used as a number');
  const number = numberOf(value);
  if (number === null) throw new MismatchError(`expected a number, not ${typeName(value)}`);
  return number;
}
