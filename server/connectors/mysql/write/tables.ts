import type { WriteTarget } from '../../contract/connector.ts';
import { ConfigurationError, DataError } from '../../contract/errors.ts';
import { DELETED_AT } from '../../contract/changes.ts';
import { OTHER_CHARSET } from '../connection/cell-shapes.ts';
import { columnTypes } from './column-types.ts';
import { exactCollation, type ServerVersion } from '../connection/server-version.ts';
import type { MysqlSession, Row } from '../connection/session.ts';
import { columnList, identifier, literal, relation } from '../connection/sql.ts';
import type { Column, Target } from './target.ts';

type Placed = WriteTarget & { schema: string };

export interface ExistingTable {
  /** Column, in lower case, to type, with its character set where that is not utf8mb4. */
  types: Map<string, string>;
}

export async function findTable(session: MysqlSession, schema: string, table: string): Promise<ExistingTable | null> {
  const { rows } = await session.query(
    `select t.table_type, t.engine, c.column_name, c.column_type, c.character_set_name from information_schema.tables t
       join information_schema.columns c on c.table_schema = t.table_schema and c.table_name = t.table_name
      where t.table_schema = ${literal(schema)} and t.table_name = ${literal(table)} order by c.ordinal_position`,
  );
  const [first] = rows;
  if (!first) return null;
  const [kind, engine] = first;
  if (kind !== 'BASE TABLE') {
    throw new ConfigurationError('not_a_table', `${schema}.${table} exists and is no table that could be written to`);
  }
  if (!/^innodb$/i.test(engine ?? '')) {
    throw new ConfigurationError(
      'not_transactional',
      `${schema}.${table} is of the engine ${engine}, which has no transactions: rows and state could not be kept together`,
    );
  }
  const typeOf = ([, , , type, charset]: Row) =>
    charset && charset !== 'utf8mb4' ? `${type}${OTHER_CHARSET}${charset}` : type!;
  return { types: new Map(rows.map((row) => [row[2]!.toLowerCase(), typeOf(row)])) };
}

/** Adds what the target has more, nullable: rows that are there have no value for it. */
export async function addMissingColumns(session: MysqlSession, target: Placed, table: ExistingTable) {
  const missing = target.columns.filter(({ name }) => !table.types.has(name.toLowerCase()));
  if (missing.length === 0) return;
  const types = columnTypes(missing, { primaryKey: target.primary_key, version: session.version });
  const added = missing.map(({ name }, index) => `add column ${identifier(name)} ${types[index]} null`);
  await session.query(`alter table ${relation(target.schema, target.table)} ${added.join(', ')}`, { slow: true });
  for (const [index, { name }] of missing.entries()) table.types.set(name.toLowerCase(), types[index]!);
}

const definitions = (columns: readonly Column[], key: readonly string[]) =>
  columns.map(({ name, type }) => `${identifier(name)} ${type} ${key.includes(name) ? 'not null' : 'null'}`);

/** Behind the columns of each table that we make. */
export const tableOptions = (version: ServerVersion) =>
  `engine = InnoDB row_format = dynamic default character set utf8mb4 collate ${exactCollation(version)}`;

export async function createTable(session: MysqlSession, target: Target, name: string): Promise<void> {
  const key = target.mode === 'append' ? [] : target.primary_key;
  const parts = definitions(target.typed, key);
  if (target.mode === 'soft_delete') parts.push(DELETION);
  if (key.length > 0) parts.push(`primary key (${columnList(key)})`);
  await session.query(
    `create table ${relation(target.schema, name)} (${parts.join(', ')}) ${tableOptions(session.version)}`,
  );
}

/** What soft_delete marks rows in, in UTC. */
const DELETION = `${identifier(DELETED_AT)} datetime(6) null`;

export async function addDeletionColumn(session: MysqlSession, target: Placed, table: ExistingTable): Promise<void> {
  if (table.types.has(DELETED_AT)) return;
  await session.query(`alter table ${relation(target.schema, target.table)} add column ${DELETION}`, { slow: true });
}

/** Gone with the session. `sequence` keeps the order of arrival, `change` what happened to a row. */
export async function createStage(
  session: MysqlSession,
  target: Target,
  stage: { relation: string; sequence: string; change: string },
): Promise<void> {
  const parts = definitions(target.typed, target.primary_key);
  parts.push(`${identifier(stage.change)} text null`);
  parts.push(`${identifier(stage.sequence)} bigint not null auto_increment primary key`);
  await session.query(`drop temporary table if exists ${stage.relation}`);
  await session.query(
    `create temporary table ${stage.relation} (${parts.join(', ')}) ${tableOptions(session.version)}`,
  );
}

/**
 * A merge needs a unique key on exactly the key's columns; an existing table without one gets it. A second unique key
 * would make rows replace others by it.
 * @throws ConfigurationError for that, and when the rows that are there are not unique by the key.
 */
export async function ensureUniqueKey(session: MysqlSession, target: Placed): Promise<void> {
  const { rows } = await session.query(
    `select index_name, group_concat(lower(column_name) order by lower(column_name) separator '\\0'), max(sub_part)
       from information_schema.statistics where non_unique = 0
        and table_schema = ${literal(target.schema)} and table_name = ${literal(target.table)} group by index_name`,
  );
  const wanted = target.primary_key.map((name) => name.toLowerCase()).toSorted();
  const isWanted = (columns: string | null | undefined) =>
    columns?.split('\0').toSorted().join('\0') === wanted.join('\0');
  const other = rows.find(([, columns]) => !isWanted(columns));
  if (other) {
    throw new ConfigurationError(
      'other_unique_key',
      `${target.table} has another unique key, ${other[0]}, by which rows would replace others: drop it, or merge by it`,
    );
  }
  if (rows.length > 0) return;
  const statement = `alter table ${relation(target.schema, target.table)} add unique key (${columnList(target.primary_key)})`;
  try {
    await session.query(statement, { slow: true });
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    throw new ConfigurationError(
      'key_not_unique',
      `${target.table} has rows with the same ${target.primary_key.join(', ')}, so rows cannot be merged into it by this key`,
    );
  }
}
