import { DataError } from '../../contract/errors.ts';
import { pyText } from './python-literal.ts';
import type { Interpolation } from './template.ts';
import { numberOf, truthy } from './values.ts';

/** The value of a template converted to a `value_type`. @throws DataError when it is not of that type */
export function typedValue(value: string, type: string | undefined, { templates, scope }: Interpolation): unknown {
  if (type === 'string') return templates.text(value, scope);
  const found = templates.value(value, scope);
  if (type === undefined || found === null) return found;
  if (type === 'boolean') return typeof found === 'boolean' ? found : truthy(found);
  const number = numberOf(found);
  if (number === null) {
    const shown = pyText(found).slice(0, 100);
    throw new DataError('template_failed', `"${value.slice(0, 100)}" is not of type ${type}: "${shown}"`);
  }
  return type === 'integer' ? Math.trunc(number) : found;
}
