import { createHash } from 'node:crypto';
import { ConfigurationError } from '../../contract/errors.ts';

/** PostgreSQL cuts longer names without a word, so that two of them may become one. */
export const NAME_BYTES = 63;

export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
export const relation = (schema: string, table: string) => `${identifier(schema)}.${identifier(table)}`;
export const columnList = (names: readonly string[]) => names.map(identifier).join(', ');

/** For places that take no parameters. Relies on `standard_conforming_strings = on`, which every session sets. */
export function literal(value: string): string {
  if (value.includes('\0')) throw new ConfigurationError('invalid_value', 'A value cannot hold the character NUL');
  return `'${value.replaceAll("'", "''")}'`;
}

/** @throws ConfigurationError when PostgreSQL could not hold the name as it is. */
export function checkedName(kind: 'schema' | 'table' | 'column', name: string): string {
  if (name === '' || name.includes('\0')) throw new ConfigurationError('invalid_name', `A ${kind} needs a name`);
  const bytes = Buffer.byteLength(name);
  if (bytes > NAME_BYTES) {
    throw new ConfigurationError(
      'name_too_long',
      `The ${kind} name "${name}" has ${bytes} bytes; PostgreSQL takes ${NAME_BYTES}. Give it a shorter name`,
    );
  }
  return name;
}

/** `name` and `suffix` together within the limit: the name is cut at a character. */
export function derivedName(name: string, suffix: string): string {
  let cut = name;
  while (Buffer.byteLength(cut) + Buffer.byteLength(suffix) > NAME_BYTES) cut = Array.from(cut).slice(0, -1).join('');
  return cut + suffix;
}

export const shortHash = (...parts: (string | number)[]) =>
  createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 8);
