import { digitsOf } from '../../cells/json-cells.ts';
import { isFloat } from './python-number.ts';
import type { Interpolation } from './template.ts';

const isNumber = (value: unknown) => typeof value !== 'boolean' && digitsOf(value) !== null;

/** Which literals a `value_type` takes from a text. Others stay text, as with Airbyte. */
const TYPES: Record<string, (value: unknown) => boolean> = {
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  integer: (value) => isNumber(value) && !isFloat(value),
  number: (value) => isNumber(value) && isFloat(value),
};

/** The value of a template for a field with a `value_type`. */
export const typedValue = (value: string, type: string | undefined, { templates, scope }: Interpolation): unknown =>
  templates.field(value, scope, (type === undefined ? undefined : TYPES[type]) ?? (() => true));
