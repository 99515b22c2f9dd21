import { digitsOf } from '../../cells/json-cells.ts';
import { pyText } from './python-literal.ts';
import { PySpan, PyTime } from './python-time.ts';

/** What a template is: refused for good, as it would be at every record. */
export class TemplateError extends Error {}

/** Something that is not there was looked into: the whole then has no value. */
export class UndefinedError extends Error {}

export type Named = Record<string, unknown>;
/** A macro, filter or method. */
export type Callable = (args: unknown[], named: Named) => unknown;

/** Longest text that a template may make. */
export const LONGEST = 1_000_000;
/** Steps of one evaluation. */
export const MOST_STEPS = 100_000;

export const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof PyTime) &&
  !(value instanceof PySpan) &&
  digitsOf(value) === null;

/** A number, also one whose digits were kept as text; null for anything else. */
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

/** @throws TemplateError when the two have no order between them */
export function compare(a: unknown, b: unknown): number {
  if (a === undefined || b === undefined) throw new UndefinedError('a value that is not there is compared');
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : Number(a > b);
  if (a instanceof PyTime && b instanceof PyTime) return Math.sign(a.micros - b.micros);
  if (a instanceof PySpan && b instanceof PySpan) return Math.sign(a.micros - b.micros);
  const [x, y] = [numberOf(a), numberOf(b)];
  if (x !== null && y !== null) return Math.sign(x - y);
  if (Array.isArray(a) && Array.isArray(b)) {
    const at = a.findIndex((item, index) => index >= b.length || !equal(item, b[index]));
    if (at < 0) return a.length - b.length;
    return at >= b.length ? 1 : compare(a[at], b[at]);
  }
  throw new TemplateError(`${typeName(a)} and ${typeName(b)} have no order`);
}

export function typeName(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (value instanceof PyTime) return 'a time';
  if (value instanceof PySpan) return 'a duration';
  if (Array.isArray(value)) return 'a list';
  if (numberOf(value) !== null) return typeof value === 'boolean' ? 'a boolean' : 'a number';
  return typeof value === 'string' ? 'a text' : 'a mapping';
}

export function contains(whole: unknown, part: unknown): boolean {
  if (whole === undefined) throw new UndefinedError('a value that is not there is looked into');
  if (typeof whole === 'string' && typeof part === 'string') return whole.includes(part);
  if (Array.isArray(whole)) return whole.some((item) => equal(item, part));
  if (isMapping(whole)) return Object.hasOwn(whole, pyText(part));
  throw new TemplateError(`${typeName(whole)} holds nothing that could be looked for`);
}

/** The items of a list, the names of a mapping, the characters of a text. */
export function itemsOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  if (value === undefined) return [];
  if (typeof value === 'string') return Array.from(value);
  if (isMapping(value)) return Object.keys(value);
  throw new TemplateError(`${typeName(value)} has no items`);
}

/** Keeps texts and lists below what a page may weigh. */
export function bounded<Value>(value: Value): Value {
  if ((typeof value === 'string' || Array.isArray(value)) && value.length > LONGEST) {
    throw new TemplateError(`a template makes more than ${LONGEST} characters or items`);
  }
  return value;
}

/** A text of a value that must be one. */
export function textArgument(value: unknown): string {
  if (value === undefined) throw new UndefinedError('a value that is not there is used as text');
  if (typeof value !== 'string') throw new TemplateError(`a text is needed, not ${typeName(value)}`);
  return value;
}

export function numberArgument(value: unknown, otherwise?: number): number {
  if (value === undefined && otherwise !== undefined) return otherwise;
  if (value === undefined) throw new UndefinedError('a number that is not there is used');
  const number = numberOf(value);
  if (number === null) throw new TemplateError(`a number is needed, not ${typeName(value)}`);
  return number;
}
