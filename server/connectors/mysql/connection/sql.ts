/** Longer names are rejected by the server. */
export const MAX_NAME_CHARACTERS = 64;

export const identifier = (name: string) => `\`${name.replaceAll('`', '``')}\``;
export const relation = (database: string, table: string) => `${identifier(database)}.${identifier(table)}`;
export const columnList = (names: readonly string[]) => names.map(identifier).join(', ');

/** Relies on backslash escapes, which every session's sql_mode has. */
export const literal = (value: string) =>
  `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''").replaceAll('\0', '\\0')}'`;

/** The name is truncated so that it fits with the suffix. */
export const derivedName = (name: string, suffix: string) =>
  name.slice(0, MAX_NAME_CHARACTERS - suffix.length) + suffix;

export const mysqlNames = { identifier, relation };
