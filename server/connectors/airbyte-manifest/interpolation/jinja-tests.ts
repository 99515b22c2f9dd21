import { isFloat } from './python-number.ts';
import { isMapping, numberOf, TemplateError } from './values.ts';

/** @throws TemplateError for an unknown test */
export function passesTest(name: string, value: unknown): boolean {
  const number = numberOf(value);
  const isNumber = number !== null && typeof value !== 'boolean';
  switch (name) {
    case 'defined':
      return value !== undefined;
    case 'undefined':
      return value === undefined;
    case 'none':
      return value === null;
    case 'string':
      return typeof value === 'string';
    case 'number':
      return isNumber;
    case 'integer':
      return isNumber && !isFloat(value);
    case 'float':
      return isNumber && isFloat(value);
    case 'boolean':
      return typeof value === 'boolean';
    case 'mapping':
      return isMapping(value);
    case 'sequence':
    case 'iterable':
      return Array.isArray(value) || typeof value === 'string' || isMapping(value);
    case 'true':
      return value === true;
    case 'false':
      return value === false;
    case 'odd':
    case 'even':
      return number !== null && Math.abs(number % 2) === (name === 'odd' ? 1 : 0);
    default:
      throw new TemplateError(`unknown test "${name}"`);
  }
}
