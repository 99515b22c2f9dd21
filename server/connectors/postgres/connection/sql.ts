import { ConfigurationError } from '../../contract/errors.ts';

export const MAX_NAME_BYTES = 63;

export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
export const relation = (schema: string, table: string) => `${identifier(schema)}.${identifier(table)}`;
export const columnList = (names: readonly string[]) => names.map(identifier).join(', ');

/** For statements that take no parameters. Relies on `standard_conforming_strings = on`, which every session sets. */
export function literal(value: string): string {
  if (value.includes('\0'))
    throw new ConfigurationError(
      'invalid_value',
      'PostgreSQL cannot store the character NUL. Remove it from the value',
    );
  return `'${value.replaceAll("'", "''")}'`;
}

/** The name is truncated, between two characters, so that it fits with the suffix. */
export function derivedName(name: string, suffix: string): string {
  let cut = name;
  while (Buffer.byteLength(cut) + Buffer.byteLength(suffix) > MAX_NAME_BYTES)
    cut = Array.from(cut).slice(0, -1).join('');
  return cut + suffix;
}

export const postgresNames = { identifier, relation };
