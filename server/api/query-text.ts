import type { z } from 'zod';

/**
 * Converts query parameters from text to the declared types. Booleans are exactly `true` or `false`, numbers are decimal
 * digits. Anything else stays text, which the schema rejects.
 */
export function coerceText(schema: z.ZodObject, given: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const type = Object.hasOwn(schema.shape, name) ? schema.shape[name] : undefined;
      return [name, type ? coerce(type as z.core.$ZodTypes, value) : value];
    }),
  );
}

function coerce(type: z.core.$ZodTypes, value: unknown): unknown {
  const { def } = type._zod;
  switch (def.type) {
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
    case 'nonoptional':
    case 'catch':
      return coerce(def.innerType as z.core.$ZodTypes, value);
    case 'pipe':
      return coerce(def.in as z.core.$ZodTypes, value);
    case 'boolean':
      return value === 'true' ? true : value === 'false' ? false : value;
    case 'number':
      return typeof value === 'string' && /^-?\d{1,15}(\.\d{1,15})?$/.test(value) ? Number(value) : value;
    case 'array': {
      const list = Array.isArray(value) ? value : [value];
      return list.map((item) => coerce(def.element as z.core.$ZodTypes, item));
    }
    default:
      return value;
  }
}
