import { DELETED_AT } from '../../contract/changes.ts';
import { ConfigurationError, DataError } from '../../contract/errors.ts';
import type { TableOfStream } from '../../contract/writer.ts';
import { columnList, type Dialect, type SqlDatabase } from './dialect.ts';
import { type ExistingTable, isMerge, keyOf, type PlacedTarget, type Target } from './target.ts';
import { widenedColumns } from './widening.ts';

/** Columns as CREATE TABLE takes them. "null" is not the default for every type of every database. */
export const definitions = (
  { identifier }: Pick<Dialect, 'identifier'>,
  { typed }: Pick<Target, 'typed'>,
  key: readonly string[],
): string[] => typed.map(({ name, type }) => `${identifier(name)} ${type} ${key.includes(name) ? 'not null' : 'null'}`);

const optionsOf = ({ tableOptions, mergedTableOptions = tableOptions }: Dialect, target: Pick<Target, 'mode'>) =>
  isMerge(target) ? mergedTableOptions : tableOptions;

const deletionColumn = ({ identifier, types }: Dialect) => `${identifier(DELETED_AT)} ${types.instant} null`;

/** @param key the primary key of the new table; [] for none. `filled`: the columns that take no NULL. */
export async function createTable({ session, dialect }: SqlDatabase, target: Target, created: NewTable): Promise<void> {
  await session.query(creation(dialect, target, created));
}

interface NewTable {
  name: string;
  key: readonly string[];
  filled?: readonly string[];
}

/** The statement of `createTable`. */
export function creation(dialect: Dialect, target: Target, { name, key, filled = key }: NewTable): string {
  const lines = parts(dialect, target, { key, filled });
  return `create table ${dialect.relation(target.schema, name)} (${lines.join(', ')}) ${optionsOf(dialect, target)}`;
}

function parts(
  dialect: Dialect,
  target: Pick<Target, 'typed' | 'mode'>,
  { key, filled }: { key: readonly string[]; filled: readonly string[] },
): string[] {
  const all = definitions(dialect, target, filled);
  if (target.mode === 'soft_delete') all.push(deletionColumn(dialect));
  if (key.length > 0) all.push(`primary key (${columnList(dialect, key)})`);
  return all;
}

/** The statement that creates the table of a stream, for people to read. */
export function tableDefinition(dialect: Dialect, target: TableOfStream, schema: string): string {
  const key = dialect.hasKeys ? keyOf(target) : [];
  const types = dialect.columnTypes(target.columns, keyOf(target));
  const typed = target.columns.map(({ name }, index) => ({ name, type: types[index]! }));
  const lines = parts(dialect, { ...target, typed }, { key, filled: key }).map((part) => `  ${part}`);
  return `create table ${dialect.relation(schema, target.table)} (\n${lines.join(',\n')}\n) ${optionsOf(dialect, target)}`.trim();
}

/**
 * Adds the columns that an existing table lacks, nullable since its rows have no value for them, and widens those
 * whose type has changed at the source. `table.types` is updated.
 * @returns the added columns that earlier runs wrote
 */
export async function adaptTable(db: SqlDatabase, target: PlacedTarget, table: ExistingTable): Promise<string[]> {
  const { session, dialect } = db;
  const { identifier, names } = dialect;
  const widened = widenedColumns(target, {
    existing: (name) => table.types.get(names.fold(name)),
    wanted: (column) => dialect.columnTypes([column], keyOf(target))[0]!,
    widens: dialect.widens,
  });
  const isKey = (name: string) => keyOf(target).includes(name);
  const changes = widened.map(({ name, type }) => dialect.changeType({ name, type, isKey: isKey(name) }));
  const missing = target.columns.filter(({ name }) => !table.types.has(names.fold(name)));
  const types = dialect.columnTypes(missing, keyOf(target));
  changes.push(...missing.map(({ name }, index) => `add column ${identifier(name)} ${types[index]} null`));
  if (target.mode === 'soft_delete' && !table.types.has(DELETED_AT)) {
    changes.push(`add column ${deletionColumn(dialect)}`);
  }
  if (changes.length === 0) return [];
  for (const statement of dialect.alterTable(dialect.relation(target.schema, target.table), changes)) {
    await session.query(statement, { slow: true });
  }
  for (const [index, { name }] of missing.entries()) table.types.set(names.fold(name), types[index]!);
  for (const { name, type } of widened) table.types.set(names.fold(name), type);
  return missing.filter(({ previous }) => previous != null).map(({ name }) => name);
}

export const keyNotUnique = ({ table, primary_key }: PlacedTarget) =>
  new ConfigurationError(
    'key_not_unique',
    `${table} has several rows with the same ${primary_key.join(', ')}, so rows cannot be merged into it by this key`,
  );

/** Runs the statement that gives an existing table a unique key. @throws ConfigurationError `key_not_unique` */
export async function addUniqueKey({ session }: SqlDatabase, target: PlacedTarget, statement: string): Promise<void> {
  try {
    await session.query(statement, { slow: true });
  } catch (error) {
    throw error instanceof DataError ? keyNotUnique(target) : error;
  }
}
