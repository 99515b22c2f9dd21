import type { NameRules } from './writer.ts';

/** Why a destination cannot store a name as it is; null: it can. @param kind such as `column` */
export function nameProblem(
  { product, max, invalid }: NameRules,
  kind: string,
  name: string,
): { code: 'invalid_name' | 'name_too_long'; message: string } | null {
  if (name === '' || invalid.test(name)) {
    return { code: 'invalid_name', message: `${product} cannot store "${name}" as the name of a ${kind}` };
  }
  const length = max?.unit === 'bytes' ? Buffer.byteLength(name) : name.length;
  if (!max || length <= max.length) return null;
  const allowed = `${product} allows ${max.length}. Use a shorter name`;
  return { code: 'name_too_long', message: `The ${kind} name "${name}" has ${length} ${max.unit}; ${allowed}` };
}
