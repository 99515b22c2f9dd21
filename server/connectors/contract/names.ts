import type { NameRules } from './writer.ts';

/** Why a destination cannot store a name as it is; null: it can. @param kind such as `column` */
export function nameProblem(
  { product, max, invalid, system_columns, fold }: NameRules,
  kind: string,
  name: string,
): { code: 'invalid_name' | 'name_too_long' | 'reserved_name'; message: string } | null {
  if (name === '' || invalid.test(name)) {
    return { code: 'invalid_name', message: `${product} cannot store "${name}" as the name of a ${kind}` };
  }
  if (kind === 'column' && system_columns?.has(fold(name))) {
    const advice = 'Set another destination name, or deselect the field';
    return { code: 'reserved_name', message: `"${name}" is a system column of ${product}. ${advice}` };
  }
  const length = max?.unit === 'bytes' ? Buffer.byteLength(name) : name.length;
  if (!max || length <= max.length) return null;
  const allowed = `${product} allows ${max.length}. Use a shorter name`;
  return { code: 'name_too_long', message: `The ${kind} name "${name}" has ${length} ${max.unit}; ${allowed}` };
}
