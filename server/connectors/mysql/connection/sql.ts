import { createHash } from 'node:crypto';
import { ConfigurationError } from '../../contract/errors.ts';

/** Longer names are refused by the server. Counted in characters. */
export const NAME_CHARACTERS = 64;

export const identifier = (name: string) => `\`${name.replaceAll('`', '``')}\``;
export const relation = (database: string, table: string) => `${identifier(database)}.${identifier(table)}`;
export const columnList = (names: readonly string[]) => names.map(identifier).join(', ');

/** Relies on backslash escapes, which every session's sql_mode has. */
export const literal = (value: string) =>
  `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''").replaceAll('\0', '\\0')}'`;

/** @throws ConfigurationError when the server could not hold the name as it is. */
export function checkedName(kind: 'database' | 'table' | 'column', name: string): string {
  // Beyond the basic plane there are no names, and blanks at the end would be cut.
  if (name === '' || /[\0\ud800-\udfff]|\s$/.test(name)) {
    throw new ConfigurationError('invalid_name', `MySQL cannot name a ${kind} "${name}"`);
  }
  if (name.length > NAME_CHARACTERS) {
    throw new ConfigurationError(
      'name_too_long',
      `The ${kind} name "${name}" has ${name.length} characters; MySQL takes ${NAME_CHARACTERS}. Give it a shorter name`,
    );
  }
  return name;
}

/** `name` and `suffix` together within the limit. */
export const derivedName = (name: string, suffix: string) => name.slice(0, NAME_CHARACTERS - suffix.length) + suffix;

export const shortHash = (...parts: (string | number)[]) =>
  createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 8);
